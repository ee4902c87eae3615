"""How good translations are, for which sentences, and whether a difference is more than luck. Needs no torch."""
