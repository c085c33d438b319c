"""The fixtures of this folder."""

from tests.dynamo.fixtures import dynamo_env, loopback, shared_loopback

__all__ = ["dynamo_env", "loopback", "shared_loopback"]
