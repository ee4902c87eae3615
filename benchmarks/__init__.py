"""Benchmarks of softgaze and its peers; the package does not import them."""
