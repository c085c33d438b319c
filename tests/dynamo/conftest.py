"""The fixtures of this folder."""

from .fixtures import dynamo_env, loopback, shared_loopback

__all__ = ["dynamo_env", "loopback", "shared_loopback"]
