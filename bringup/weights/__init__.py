"""Weights of a model: what lies in a folder, what differs, and how it gets to other hosts. Pure."""
