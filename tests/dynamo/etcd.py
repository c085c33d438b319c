"""A real etcd server of one member on loopback."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bringup.core.errors import Unreachable
from bringup.edge.etcd import Etcd
from bringup.edge.http import ask
from tests.needed import require

from .processes import Program, free_ports


@dataclass(frozen=True, slots=True)
class Server:
    """A running etcd: where it listens, and the program."""

    url: str
    program: Program

    @property
    def client(self) -> Etcd:
        return Etcd((self.url,), seconds=120)


def start_etcd(folder: Path) -> Server:
    """Start etcd with its data in a folder; tries other ports where the first are taken."""
    require("etcd")
    folder.mkdir(parents=True, exist_ok=True)
    for attempt in range(5):
        url, program = _launch(folder, attempt)
        try:
            program.wait_for(functools.partial(_healthy, url), "/health is true")
        except AssertionError:
            program.kill()
            if "address already in use" not in program.log:
                raise
        else:
            return Server(url, program)
    raise AssertionError("etcd found no free port in five tries")


def _launch(folder: Path, attempt: int) -> tuple[str, Program]:
    client, peer = (f"http://127.0.0.1:{port}" for port in free_ports(2))
    words = [
        "etcd",
        *("--data-dir", str(folder / f"data{attempt}")),
        *("--listen-client-urls", client),
        *("--advertise-client-urls", client),
        *("--listen-peer-urls", peer),
        *("--initial-advertise-peer-urls", peer),
        *("--initial-cluster", f"default={peer}"),
    ]
    env = {"PATH": os.environ["PATH"], "ETCD_UNSUPPORTED_ARCH": "arm64"}
    log = folder / f"etcd{attempt}.log"
    return client, Program.start("etcd", words, env=env, cwd=folder, log_file=log)


def _healthy(url: str) -> bool:
    try:
        return b"true" in ask(f"{url}/health", seconds=30).body
    except Unreachable:
        return False


@contextmanager
def etcd_server(folder: Path) -> Iterator[Server]:
    """Run etcd for a while."""
    server = start_etcd(folder)
    try:
        yield server
    finally:
        server.program.stop()
