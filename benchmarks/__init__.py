"""Measurements of softgaze beside its peers; nothing here is imported by the package."""
