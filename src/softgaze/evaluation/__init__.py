"""Evaluate models: translation quality, significance, attention, speed, comparisons and complexity.

Modules that only score text do not import torch.
"""
