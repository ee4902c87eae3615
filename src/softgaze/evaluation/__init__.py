"""How good translations are, for which sentences, and whether a difference is more than luck.

What compares texts needs no torch; what trains models or takes them apart does.
"""
