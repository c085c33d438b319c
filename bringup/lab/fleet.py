"""Bring the practice fleet up and down: folders, keys, inventory, and the server behind them."""

from __future__ import annotations

import fcntl
import json
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from ..core.errors import ToolError
from . import MISSING, keys, machine, record, toolkit, tree
from .describe import describe, names
from .hardware import USER, Hardware
from .host import tree as tree_of
from .inventory import DEPLOYMENTS, inventory_files
from .orders import orders
from .process import server_pid, start_server, stop_server

FOLDER = Path(".lab")
"""Where the fleet lives unless somebody says otherwise, below the working directory."""

PATIENCE_S = 180.0
"""How long to wait for the server to start, or for another `up` to end."""


@dataclass(frozen=True, slots=True)
class LabHost:
    """One practice host as the fleet stands. `port` is 0 before the first start."""

    name: str
    about: str
    address: str
    port: int
    root: Path


@dataclass(frozen=True, slots=True)
class LabStatus:
    """The fleet as it stands. `pid` is None when no server runs."""

    folder: Path
    pid: int | None
    hosts: tuple[LabHost, ...]

    @property
    def is_up(self) -> bool:
        return self.pid is not None

    @property
    def inventory(self) -> Path:
        return self.folder / "inventory"


Say = Callable[[str], None]


def _quiet(_: str) -> None:
    pass


def up(
    folder: Path = FOLDER,
    hosts: tuple[str, ...] = (),
    *,
    fresh: bool = False,
    on_line: Say = _quiet,
    descriptions: tuple[Hardware, ...] | None = None,
) -> LabStatus:
    """Bring the fleet to its descriptions, whatever stood there, and return how it stands.

    `hosts` are names or patterns (``b300-[01-30]``); by default the hosts that are up and those
    described since, or all described ones. `fresh` makes host folders anew. `descriptions` takes
    the place of the files.
    Raises UsageError for an unknown host, ToolError when the server does not start.
    """
    if find_spec("asyncssh") is None:
        raise ToolError(MISSING, remedy="pip install 'bringup[lab]'")
    folder = folder.resolve()
    wanted = descriptions or describe(hosts or tuple(_ordered(folder)))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _alone(folder):
            return _settle(folder, wanted, fresh=fresh, on_line=on_line)
    except OSError as error:
        what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        raise ToolError(f"cannot make the practice fleet in {folder}: {what}") from error


def _settle(folder: Path, wanted: tuple[Hardware, ...], *, fresh: bool, on_line: Say) -> LabStatus:
    for hardware in wanted:
        _settle_host(folder, hardware, fresh=fresh, on_line=on_line)
    machine.share(folder / "machine" / "bin")
    keys.settle(folder / "keys", tuple(hardware.name for hardware in wanted))
    _serve(folder, wanted, on_line)
    standing = status(folder)
    _connect(folder, standing)
    _write_inventory(folder, wanted, standing)
    return standing


def down(folder: Path = FOLDER, *, remove: bool = False, on_line: Say = _quiet) -> LabStatus:
    """End the server and all it runs; with `remove`, delete the fleet's folder as well.

    Raises ToolError when `remove` meets a folder that is no practice fleet.
    """
    folder = folder.resolve()
    if folder.is_dir():
        with _alone(folder):
            if pid := server_pid(folder):
                stop_server(folder, pid)
                on_line(f"stopped the server, process {pid}")
    if remove and folder.exists():
        _remove(folder)
        on_line(f"removed {folder}")
    return status(folder)


def status(folder: Path = FOLDER) -> LabStatus:
    """Return how the fleet stands."""
    folder = folder.resolve()
    ports = _ports(folder)
    rows = record.read(folder / "fleet.json").get("hosts", ())
    hosts = tuple(
        LabHost(
            row["name"], row["about"], "127.0.0.1", ports.get(row["name"], 0), Path(row["root"])
        )
        for row in rows
    )
    return LabStatus(folder, server_pid(folder), hosts)


def digest(folder: Path, host: str) -> str:
    """Return ``sha256:…`` of all that a host's folder holds; holes of the weights are skipped."""
    return tree.digest(folder.resolve() / "hosts" / host / "root")


def _ordered(folder: Path) -> Iterator[str]:
    """Yield the hosts of the fleet as it was last ordered, and what was described since."""
    before = record.read(folder / "fleet.json")
    hosts = [row["name"] for row in before.get("hosts", ())]
    known = {*hosts, *before.get("described", names())}
    yield from hosts
    yield from (name for name in names() if hosts and name not in known)


def _ports(folder: Path) -> dict[str, int]:
    """Return each host's port as the server told it, else as it was ordered."""
    if told := record.read(folder / "server.json").get("ports"):
        return dict(told)
    rows = record.read(folder / "fleet.json").get("hosts", ())
    return {row["name"]: row["port"] for row in rows if row["port"]}


def _settle_host(folder: Path, hardware: Hardware, *, fresh: bool, on_line: Say) -> None:
    """Bring one host's folder to its description. The record is written last."""
    home = folder / "hosts" / hardware.name
    if fresh and home.exists():
        shutil.rmtree(home)
    described = home / "described.json"
    before = frozenset(record.read(described).get("paths", ()))
    wanted = tree_of(hardware)
    if not before:
        on_line(f"making {hardware.name}: {hardware.about}")
    tree.settle(home / "root", wanted, before=before)
    if before != wanted.keys():
        described.write_text(json.dumps({"paths": sorted(wanted)}, indent=0) + "\n")


def _serve(folder: Path, wanted: tuple[Hardware, ...], on_line: Say) -> None:
    """Have a server that serves exactly these hosts; ports stay the same where they can."""
    ports = _ports(folder)
    fleet = orders(folder, wanted, ports)
    before = record.read(folder / "fleet.json")
    running = server_pid(folder)
    if running and before == fleet and "ports" in record.read(folder / "server.json"):
        return
    if running:
        stop_server(folder, running)
        gone = {row["name"] for row in before.get("hosts", ())} - {each.name for each in wanted}
        if gone:
            on_line(f"no longer serving {', '.join(sorted(gone))}: not among the hosts asked for")
    record.write(folder / "fleet.json", fleet)
    start_server(folder)
    on_line(f"serving {len(wanted)} host{'s' * (len(wanted) != 1)}")
    given = record.read(folder / "server.json").get("ports", {})
    if given != ports:
        record.write(folder / "fleet.json", orders(folder, wanted, given))


def _connect(folder: Path, standing: LabStatus) -> None:
    """Tell every host's programs where the practice network is on loopback."""
    text = json.dumps(record.read(folder / "server.json").get("network", {}), indent=1) + "\n"
    for host in standing.hosts:
        path = host.root.joinpath(*toolkit.NETWORK.split("/"))
        if not path.is_file() or path.read_text() != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


def _write_inventory(folder: Path, wanted: tuple[Hardware, ...], standing: LabStatus) -> None:
    """Write the inventory, known_hosts and an ssh_config that fit the server's ports."""
    ports = {host.name: host.port for host in standing.hosts}
    files = inventory_files(folder, USER, wanted, ports)
    for shipped in DEPLOYMENTS.glob("*.yml"):
        if f"inventory/deployments/{shipped.name}" not in files:
            (folder / "inventory" / "deployments" / shipped.name).unlink(missing_ok=True)
    for name, text in files.items():
        path = folder / name
        if not path.is_file() or path.read_text() != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            fresh = path.with_name(path.name + ".new")
            fresh.write_text(text)
            fresh.replace(path)


def _remove(folder: Path) -> None:
    if not (folder / "fleet.json").exists() and not (folder / "hosts").exists():
        raise ToolError(f"cannot remove {folder}: it holds no practice fleet")
    shutil.rmtree(folder)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Let one `up` or `down` at a time work on a folder."""
    with (folder / "up.lock").open("a") as stream:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise ToolError(
                        f"cannot lock {folder}: another lab.up is at work there"
                    ) from None
                time.sleep(0.05)
        yield
