"""Probes: one file a question. Each file holds its type, its sh text, and its pure parser."""
