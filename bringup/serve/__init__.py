"""Serving a deployment: what is started where, in which order, and why not."""
