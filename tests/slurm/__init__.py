"""Hosts taken from Slurm and given back."""
