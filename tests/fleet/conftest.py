"""The fleet's own tests."""

from .fixtures import fleet, make_sshd, sshd, yard

__all__ = ["fleet", "make_sshd", "sshd", "yard"]
