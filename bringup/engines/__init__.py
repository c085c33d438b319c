"""One file an engine: settled knobs to argv and environment."""
