"""The fixtures of this folder."""

from tests.dynamo.fixtures import dynamo_env, loopback, shared_loopback
from tests.fleet.fixtures import sshd

__all__ = ["dynamo_env", "loopback", "shared_loopback", "sshd"]
