"""Tables of rows: checks of a host, choices for a deployment."""
