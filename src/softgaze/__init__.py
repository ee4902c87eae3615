"""softgaze: sequence models whose attention you can see, trust and ship."""

__version__ = "0.1.0"
