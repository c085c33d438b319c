"""Programs that run inside an image while it is built and gated: standard library alone."""
