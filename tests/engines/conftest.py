"""The real Dynamo, where a test wants its parser."""

from tests.dynamo.fixtures import dynamo_env

__all__ = ["dynamo_env"]
