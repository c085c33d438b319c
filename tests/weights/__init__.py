"""Weights of a model: looked at, compared, copied between real hosts."""
