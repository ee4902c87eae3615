"""Why self-attention: what a layer of each kind costs and how far a signal travels in it (Vaswani 2017, table 1).

Nothing of the table is typed in: operations are counted, chains and paths are found in the layers themselves, time and
memory are measured, and only then are they held against the theory. For trained models: what depends on what.
"""
