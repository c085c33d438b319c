"""Loading paramiko without what we never use of it.

It imports Invoke for ``Match exec`` lines of ssh_config, and with it YAML, mocks and asyncio: a
third of its start. `ssh -G` reads those lines for us, so Invoke is out of sight meanwhile, which
paramiko takes as not installed.
"""

from __future__ import annotations

import sys
import threading

_LOADING = threading.Lock()


def load() -> None:
    """Load paramiko, once."""
    with _LOADING:
        hides = "paramiko" not in sys.modules and "invoke" not in sys.modules
        if hides:
            sys.modules["invoke"] = None  # type: ignore[assignment]  # an import of it fails
        try:
            import paramiko  # noqa: F401
        finally:
            if hides:
                del sys.modules["invoke"]
