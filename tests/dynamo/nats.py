"""A real NATS server on loopback."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.needed import require

from .processes import Program, free_ports


@contextmanager
def nats_server(folder: Path, *options: str) -> Iterator[str]:
    """Yield the HOST:PORT of a server that runs in a folder with more options, as ``-js``."""
    require("nats-server")
    (port,) = free_ports(1)
    words = ["nats-server", "-a", "127.0.0.1", "-p", str(port), *options]
    env = {"PATH": os.environ["PATH"]}
    program = Program.start("nats", words, env=env, cwd=folder, log_file=folder / "log")
    try:
        program.says("Server is ready")
        yield f"127.0.0.1:{port}"
    finally:
        program.stop()
