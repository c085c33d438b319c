"""The edge is tested against real OpenSSH servers."""

from tests.fleet.fixtures import fleet, make_sshd, sshd, yard

__all__ = ["fleet", "make_sshd", "sshd", "yard"]
