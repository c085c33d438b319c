"""Remedies: from a finding to the steps that clear it. Pure."""
