"""Reach a test's server the way a verb does, and nothing of the operator's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bringup.core.host import Host
from bringup.edge.ssh import SshFleet, SshOptions, SshRemote


@contextmanager
def reach(host: Host, known_hosts: Path | None, **options: object) -> Iterator[SshRemote]:
    """Give the remote of one host; its fleet is closed at the end."""
    chosen = {"use_ssh_config": False, **options}
    with SshFleet({host.name: host}, SshOptions(known_hosts=known_hosts, **chosen)) as fleet:  # type: ignore[arg-type]
        yield fleet.remote(host.name)


def ask(host: Host, known_hosts: Path | None, **options: object) -> str:
    """Return what a host says to a short script."""
    with reach(host, known_hosts, **options) as remote:
        return remote.read("echo ready", seconds=60).stdout
