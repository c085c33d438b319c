"""The SSH server of all practice hosts: one process, a port and a host key for each host.

``python -m bringup.lab.server FOLDER`` reads FOLDER/fleet.json, listens, puts itself into the
background, and ends with 0 once every host can be reached. It holds a lock on FOLDER/server.lock
for as long as it lives, and writes FOLDER/server.json with its process and the ports.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from .hardware import Faults

try:
    import asyncssh
except ModuleNotFoundError as error:  # the practice fleet is an extra
    from . import MISSING

    raise SystemExit(MISSING) from error

from . import neighbours, record
from .door import LOCAL, Door, Files, Served
from .neighbours import Neighbour, Network
from .session import LOG, Place, end_group, forget_ended, serve

WATCH_S = 2.0
"""How often the server looks whether its folder is still there."""


@dataclass(frozen=True, slots=True)
class Orders:
    """What the server is to serve, from fleet.json."""

    user: str
    authorized: Path
    tools: Path
    hosts: tuple[Served, ...]
    neighbours: tuple[Neighbour, ...] = ()


def orders(folder: Path) -> Orders:
    """Read fleet.json."""
    said = json.loads((folder / "fleet.json").read_bytes())
    hosts = tuple(
        Served(
            row["name"], Path(row["root"]), Path(row["key"]), Faults(**row["faults"]),
            row["address"], row["port"],
        )
        for row in said["hosts"]
    )  # fmt: skip
    near = tuple(Neighbour(**row) for row in said["neighbours"])
    return Orders(said["user"], Path(said["authorized"]), Path(said["tools"]), hosts, near)


def place(host: Served, user: str, tools: Path) -> Place:
    """Return where a host's commands run: its own programs first, then the machine's safe ones."""
    home = host.root / "home" / user
    own = (
        host.root / folder for folder in ("usr/local/sbin", "usr/local/bin", "usr/sbin", "usr/bin")
    )
    environment = {
        "PATH": ":".join(map(str, (*own, tools))),
        "HOME": str(home),
        "USER": user,
        "LOGNAME": user,
        "SHELL": "/bin/sh",
    }
    return Place(host.name, home, environment, host.faults)


def bind(host: Served) -> socket.socket:
    """Return a socket bound to the host's port, or to a free one when that is taken."""
    for port in (host.port, 0):
        made = socket.socket()
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind((LOCAL, port))
        except OSError:
            made.close()
            if not port:
                raise
        else:
            return made
    raise AssertionError("a free port always binds")


async def listen(
    host: Served, bound: socket.socket, said: Orders, at: Place, network: Network
) -> Any:  # noqa: ANN401 - either kind of server
    """Start to answer on a host's port, in the way that its description says."""
    if host.faults.login == "refuse":
        return None  # bound but not listening: the kernel refuses
    if host.faults.login == "mute":
        return await asyncio.start_server(_say_nothing, sock=bound)
    key = asyncssh.read_public_key(said.authorized)
    return await asyncssh.listen(
        sock=bound, backlog=512, server_host_keys=[str(host.key)],
        server_factory=partial(Door, host, said.user, key, network),
        process_factory=partial(serve, at), sftp_factory=partial(Files, home=at.home),
        encoding=None, line_editor=False, password_auth=False, kbdint_auth=False,
        allow_scp=False, x11_forwarding=False, agent_forwarding=False, login_timeout=120,
        compression_algs=None, keepalive_interval=0,
    )  # fmt: skip


async def _say_nothing(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        await asyncio.sleep(86400)
    finally:
        writer.close()


async def run(folder: Path, said: Orders, lock: int, ready: Callable[[], None]) -> None:
    """Serve until SIGTERM, then end every process that a session has left.

    `lock` is the inode of the lock file that this server holds.
    """
    places = [place(host, said.user, said.tools) for host in said.hosts]
    bound = [bind(host) for host in said.hosts]
    ports = {host.name: sock.getsockname()[1] for host, sock in zip(said.hosts, bound, strict=True)}
    servers, network = await neighbours.start(said.neighbours, _network_before(folder))
    for host in said.hosts:
        network.setdefault(host.address, {})["22"] = ports[host.name]
    for host, sock, at in zip(said.hosts, bound, places, strict=True):
        servers.append(await listen(host, sock, said, at, network))
    record.write(folder / "server.json", {"pid": os.getpid(), "ports": ports, "network": network})
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    ready()
    watch = asyncio.ensure_future(_watch(folder, lock, stop, places))
    await stop.wait()
    watch.cancel()
    for server in filter(None, servers):
        server.close()
    groups = {group for at in places for group in at.groups}
    await asyncio.gather(*map(end_group, groups))


def _network_before(folder: Path) -> Network:
    """Return where the practice network was when a server last ran."""
    return dict(record.read(folder / "server.json").get("network", {}))


async def _watch(folder: Path, own: int, stop: asyncio.Event, places: list[Place]) -> None:
    """Stop once the lock file is gone or another: nobody could find this server again."""
    while not stop.is_set():
        await asyncio.sleep(WATCH_S)
        for at in places:
            forget_ended(at)
        try:
            found = (folder / "server.lock").stat().st_ino
        except OSError:
            found = -1
        if found != own:
            stop.set()


def main(folder: Path) -> None:
    """Go into the background and serve; the calling process ends when all hosts can be reached."""
    said = orders(folder)
    heard, tell = os.pipe()
    if os.fork():
        os.close(tell)
        os._exit(0 if os.read(heard, 1) else 1)
    os.close(heard)
    os.setsid()
    if os.fork():
        os._exit(0)
    _background(folder, said, tell)


def _background(folder: Path, said: Orders, tell: int) -> NoReturn:
    """Serve as a process without terminal, parents or inherited streams."""
    lock = os.open(folder / "server.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.write(2, f"cannot serve {folder}: another server holds {folder}/server.lock\n".encode())
        os._exit(1)
    log = os.open(folder / "server.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)

    def ready() -> None:
        os.dup2(nothing, 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.write(tell, b"1")
        os.close(tell)

    form = "%(asctime)s %(message)s"
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format=form)
    LOG.setLevel(logging.INFO)
    asyncio.run(run(folder, said, os.fstat(lock).st_ino, ready))
    os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
