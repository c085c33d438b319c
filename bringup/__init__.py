"""Bring a bare GPU host to a serving LLM worker, over plain SSH."""

__version__ = "0.1.0"
