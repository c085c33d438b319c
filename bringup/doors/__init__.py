"""Two front doors, invoke and click, derived from the same verbs."""
