"""Times over lines that are open, in one process: `python -m benchmarks.fleet.live FOLDER`.

Prints one JSON object by line: tool, what was timed, and milliseconds. `connect` is a new line,
its login, the 25 facts and the end of it, with the library loaded; `again` is one more command;
`run` the same by Fabric's `run`; `all` one command on every host of the fleet, all lines open.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import fabric
import paramiko

from bringup.core.host import Host
from bringup.edge.pool import each
from bringup.edge.ssh import SshFleet, SshOptions

from . import work
from .client import hosts
from .hosts import PORT

CONNECTS, COMMANDS, ROUNDS = 7, 40, 5
Act = Callable[[], object]


def timed(act: Act, count: int) -> float:
    """Return the median of some calls, in milliseconds; a first one is not counted."""
    act()
    spent = []
    for _ in range(count):
        began = time.perf_counter()
        act()
        spent.append((time.perf_counter() - began) * 1000)
    return median(spent)


def tell(tool: str, what: str, milliseconds: float) -> None:
    print(json.dumps({"tool": tool, "what": what, "ms": round(milliseconds, 2)}), flush=True)


def ours(folder: Path) -> None:
    """Time bringup's own remote."""
    fleet_hosts = hosts(folder)
    name, host = next(iter(fleet_hosts.items()))
    options = SshOptions(known_hosts=folder / "known_hosts", use_ssh_config=False)

    def connect() -> None:
        with SshFleet({name: host}, options) as fleet:
            said = fleet.remote(name).read(work.facts_script(), seconds=30).stdout
        assert said.count("\n") == len(work.FACTS), said

    tell("bringup", "connect", timed(connect, CONNECTS))
    with SshFleet(fleet_hosts, options) as fleet:
        remote = fleet.remote(name)
        tell("bringup", "again", timed(lambda: remote.read("echo ok", seconds=30), COMMANDS))
        connection = remote.connection
        tell("bringup", "run", timed(lambda: connection.run("echo ok"), COMMANDS))

        def everywhere() -> None:
            act: Callable[[Host], str] = lambda h: (  # noqa: E731 - one line of work
                fleet.remote(h.name).read("echo ok", seconds=60).stdout
            )
            said = [outcome.value for outcome in each(fleet_hosts.values(), act)]
            assert said == ["ok\n"] * len(fleet_hosts), said

        tell("bringup", "all", timed(everywhere, ROUNDS))


def theirs(folder: Path) -> None:
    """Time the libraries below as they come, and OpenSSH's client."""
    host = next(iter(hosts(folder).values()))

    def client() -> paramiko.SSHClient:
        one = paramiko.SSHClient()
        one.load_host_keys(str(folder / "known_hosts"))
        one.connect(host.login.address, PORT, host.login.user, key_filename=str(folder / "id"),
                    look_for_keys=False, allow_agent=False)  # fmt: skip
        return one

    def asked(one: paramiko.SSHClient, script: str) -> None:
        one.exec_command(script)[1].read()

    def connect() -> None:
        with client() as one:
            asked(one, work.facts_script())

    tell("paramiko", "connect", timed(connect, CONNECTS))
    with client() as one:
        tell("paramiko", "again", timed(lambda: asked(one, "echo ok"), COMMANDS // 2))
    with _fabric(folder, host) as line:
        tell("fabric", "run", timed(lambda: line.run("echo ok", hide=True), COMMANDS // 2))
    ssh(folder, host)


@contextmanager
def _fabric(folder: Path, host: Host) -> Iterator[fabric.Connection]:
    config = fabric.Config(lazy=True, overrides={"load_ssh_configs": False})
    given = {"key_filename": str(folder / "id"), "look_for_keys": False, "allow_agent": False}
    with fabric.Connection(host.login.address, host.login.user, PORT, config=config,
                           connect_kwargs=given) as line:  # fmt: skip
        yield line


def ssh(folder: Path, host: Host) -> None:
    """Time OpenSSH's client: a process a command, then the same through a ControlMaster."""
    words = ("ssh", "-F", str(folder / "ssh_config"))
    facts = work.facts_script().encode()

    def call(*more: str, stdin: bytes = b"") -> None:
        subprocess.run([*words, *more], input=stdin, check=True, capture_output=True)

    tell("ssh", "connect", timed(lambda: call(host.login.address, "sh", stdin=facts), CONNECTS))
    mux = ("-S", str(folder / "mux"))
    call(*mux, "-M", "-f", "-N", host.login.address)
    try:
        tell("ssh", "again", timed(lambda: call(*mux, host.login.address, "echo ok"), COMMANDS))
    finally:
        call(*mux, "-O", "exit", host.login.address)


if __name__ == "__main__":
    ours(Path(sys.argv[1]))
    if "--only-ours" not in sys.argv:
        theirs(Path(sys.argv[1]))
