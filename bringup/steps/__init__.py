"""One file a step kind; each re-runnable."""
