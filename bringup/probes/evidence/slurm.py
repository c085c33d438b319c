"""What scontrol, sinfo and squeue told of Slurm beside us."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...core.reading import Known, Reading
from ..parts import NOT_ASKED
from ..slurm import Job, Slurm, SlurmNode, SshDevices, node_of
from ..slurm_hooks import Danger, SlurmHooks
from .asked import Asked, Output
from .piece import Piece, Readers, absent, known


def read_scontrol(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `scontrol show node NAME`."""
    if output.is_missing:
        yield absent(Slurm, output.line)
    elif asked.has("node"):
        yield known(Slurm("", node_of(output.code, output.text), NOT_ASKED), output.line)


def read_sinfo(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `sinfo -N`, `sinfo -R`: state or reason of the one node that it lists."""
    if output.is_missing:
        yield absent(Slurm, output.line)
        return
    states = re.findall(
        r"(?m)^(\S+)\s.*?\b(idle|alloc\w*|mix\w*|drain\w*|drng|down|resv|maint|fail\w*)([*~#$@+-]?)",
        output.stdout,
    )
    rows = [row for row in states if row[0] not in ("NODELIST", "PARTITION", "HOSTNAMES")]
    if len(rows) == 1:
        name, state, _ = rows[0]
        word = {"drng": "DRAINING", "resv": "RESERVED"}.get(state, state.upper())
        node: Reading[SlurmNode] = Known(SlurmNode(name, word), output.line)
        yield known(Slurm("", node, NOT_ASKED), output.line)
    del asked


def read_squeue(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `squeue -w HOST`: jobs by id, user and state."""
    if output.is_missing or output.code != 0 or asked.is_counted:
        return
    head, *rows = output.stdout.strip().splitlines() or [""]
    columns = head.split()
    if "JOBID" not in columns:
        return
    jobs = tuple(
        Job(
            cells[columns.index("JOBID")],
            _cell(cells, columns, "USER"),
            _cell(cells, columns, "ST"),
        )
        for row in rows
        if len(cells := row.split()) >= len(columns) - 1
    )
    yield known(Slurm("", NOT_ASKED, Known(jobs, f"{len(jobs)} jobs")), output.line)


def _cell(cells: list[str], columns: list[str], name: str) -> str:
    return cells[columns.index(name)] if name in columns else ""


_DANGERS = re.compile(r"\bkill\b|pmon|docker|drop_caches|/dev/shm|powersave|rm -rf")


def read_hook(path: str, output: Output) -> Iterator[Piece]:
    """Read a prolog or epilog: the lines that may hurt a worker."""
    lines = enumerate(output.stdout.splitlines(), 1)
    found = tuple(Danger(path, place, text.strip()) for place, text in lines
                  if _DANGERS.search(text) and not text.lstrip().startswith("#"))  # fmt: skip
    if output.code == 0:
        yield known(SlurmHooks((path,), found), f"{path}: {len(found)} lines to look at")


def read_allowed(output: Output) -> Iterator[Piece]:
    """Read `systemctl show ssh -p DevicePolicy,DeviceAllow`."""
    policy = re.search(r"(?m)^DevicePolicy=(\w+)$", output.stdout)
    allow = tuple(re.findall(r"(?m)^DeviceAllow=(\S+)", output.stdout))
    if policy or allow:
        yield known(SshDevices(policy[1] if policy else "auto", allow), output.line)


READERS: Readers = {"scontrol": read_scontrol, "sinfo": read_sinfo, "squeue": read_squeue}
