"""Second sources: readers of what tools print where the probe reads files. Pure, never raise."""
