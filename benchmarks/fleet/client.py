"""bringup doing the same work: `python -m benchmarks.fleet.client facts|deploy FOLDER`.

FOLDER is a fleet's; HOSTS.tsv in it lists the hosts. `facts` asks the same 25 facts in one
command; `deploy` takes the twenty files as steps: one trip that observes, then, where a file
differs, the host's lock, one trip that writes, and one that looks again.
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable
from pathlib import Path

from bringup.core.event import ignore
from bringup.core.host import Host, Login
from bringup.core.plan import Plan, plan_steps
from bringup.core.steps import Step, Write
from bringup.core.words import HostPath
from bringup.edge.pool import each
from bringup.edge.ssh import SshFleet, SshOptions
from bringup.edge.store import Store
from bringup.flow.apply import apply, observe
from bringup.flow.types import Tools
from bringup.steps.file import file_step

from . import work
from .hosts import PORT


class NoRenderer:
    """Nothing is rendered here."""

    def text(self, template: str, values: object) -> str:
        raise NotImplementedError


def hosts(folder: Path) -> dict[str, Host]:
    """Return the fleet's hosts as an inventory gives them."""
    rows = [line.split("\t") for line in (folder / "hosts.tsv").read_text().splitlines()]
    key = str(folder / "id")
    return {n: Host(n, Login(a, port=PORT, user=u, key_file=key)) for n, a, u, _ in rows}


def facts(tools: Tools, host: Host) -> None:
    """Ask all facts in one command."""
    said = tools.fleet.remote(host.name).read(work.facts_script(), seconds=30).stdout
    if said.count("\n") != len(work.FACTS):
        raise RuntimeError(f"cannot read the facts of {host.name}: {said!r}")


def steps(folder: Path, host: Host) -> tuple[Step, ...]:
    """Return the twenty files as steps."""
    place = folder / "hosts" / host.name
    wanted = work.wanted(host.name, host.login.address)
    writes = (
        Write(HostPath(f"{place}/{n}"), content, secret=True) for n, content in wanted.items()
    )
    return tuple(file_step(write) for write in writes)


def deploy(folder: Path) -> Callable[[Tools, Host], None]:
    """Return the work that places the files of one host where they differ."""

    def place(tools: Tools, host: Host) -> None:
        wanted = steps(folder, host)
        seen = observe(tools, tools.fleet.remote(host.name), host, wanted)
        plan = Plan(host.name, tools.version, "", "", (), (), plan_steps(wanted, seen))
        if plan.changes:
            _, _, error = apply(tools, host, plan)
            if error:
                raise error

    return place


def main(job: str, folder: Path) -> None:
    """Do one job on all hosts and end with 1 where it failed on any."""
    fleet_hosts = hosts(folder)
    options = SshOptions(known_hosts=folder / "known_hosts", use_ssh_config=False)
    if job != "facts":
        work.read_payload(folder.parent / "payload")
    act = facts if job == "facts" else deploy(folder)
    with SshFleet(fleet_hosts, options) as fleet:
        tools = Tools(
            fleet=fleet, renderer=NoRenderer(), store=Store(folder / "state"),
            moment=lambda: "2026-01-01T00:00:00Z", nonce=lambda: secrets.token_hex(6),
            operator="benchmark", version="benchmark", listen=ignore,
        )  # fmt: skip
        outcomes = each(fleet_hosts.values(), lambda host: act(tools, host), limit=tools.limit)
        errors = [outcome.error for outcome in outcomes if outcome.error]
    for error in errors:
        print(error, file=sys.stderr)
    sys.exit(bool(errors))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
