"""Training: a pure function of data, settings and seed."""
