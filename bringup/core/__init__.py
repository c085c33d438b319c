"""Values and pure functions: no clock, no disk, no network."""
