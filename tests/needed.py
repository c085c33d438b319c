"""Programs that tests run: without root, a test that lacks one is left out, with the reason."""

from __future__ import annotations

import os

import pytest

from bringup.flow.develop import PACKAGES, has


def require(*programs: str) -> None:
    """Leave the running test out, told how to have it, where a program is missing.

    As root this does nothing, so that the test fails: `./run test` has installed them all.
    """
    if os.geteuid() == 0:
        return
    lost = [name for name in programs if not has(name)]
    if lost:
        packages = " ".join(PACKAGES[name] for name in lost)
        pytest.skip(f"needs {', '.join(lost)}: as root, apt-get install {packages}")


def require_shell(name: str) -> None:
    """Leave the running test out where a shell besides sh and bash is missing."""
    if name in PACKAGES:
        require(name)
