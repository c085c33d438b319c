"""Topologies measured against each other on one host: what is started, asked, and kept. Pure."""
