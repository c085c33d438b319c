"""The same work on the same SSH hosts by several tools, side by side: see docs/benchmarks.md."""
