"""Why self-attention: costs and path lengths of layer types (Vaswani 2017, table 1), and dependence on distance.

layers        one layer of each type, its theoretical complexity, and the measurements of one layer
study         the measurements over lengths and widths, with fitted exponents
dependence    how strongly the output of trained models depends on source words, by distance
report        tables and charts
"""
