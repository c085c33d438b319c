"""The fixtures of this folder."""

from tests.fleet.fixtures import fleet, make_sshd, sshd, yard

__all__ = ["fleet", "make_sshd", "sshd", "yard"]
