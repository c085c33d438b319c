"""Time and bytes of placing a bundle in 1, 10 and 100 folders, over SSH to the practice fleet.

    python benchmarks/bundle.py [--targets 1 10 100] [--files-mb 1.4]

Prints one row a count: the first push, the same push again (nothing to do), and a push after one
file was altered on every target. Seconds are those of the wall clock on the machine that runs this,
with all hosts and their SSH server on it.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bringup.bundle.reports import PushOutcome
from bringup.core.remote import Traffic
from bringup.edge.bundle_files import Opened, open_archive
from bringup.edge.inventory import load
from bringup.edge.ssh import SshFleet, SshOptions
from bringup.flow.bundle import make, read_here
from bringup.flow.bundle_push import PushTarget, push
from bringup.lab import fleet as lab

PLACE = "/raid/frontend/Kimi-K3"
"""Not the worker's own path: practice hosts have weights there, which a push never touches."""
KIMI_K3_MB = 1.4
"""Size of the bundle in the K3 report: 15 files."""


@dataclass(frozen=True, slots=True)
class Row:
    """One push to many targets."""

    what: str
    targets: int
    seconds: float
    traffic: Traffic
    outcomes: tuple[PushOutcome, ...]

    def __str__(self) -> str:
        mean = self.traffic.commands / self.targets
        sent, received = self.traffic.sent / 1e6, self.traffic.received / 1e6
        return (
            f"{self.targets:>7}  {self.what:<10} {self.seconds:>8.2f} s  {mean:>5.1f} trips each  "
            f"{sent:>8.2f} MB out  {received:>6.2f} MB in"
        )


def model_folder(folder: Path, megabytes: float) -> Path:
    """Write fifteen files of made-up content, as many bytes as wanted in all."""
    folder.mkdir()
    document = '{"model_type": "kimi_k3", "architectures": ["KimiK3"], "eos_token_id": 1}'
    (folder / "config.json").write_text(document)
    (folder / "tokenizer_config.json").write_text('{"chat_template": "{{ messages }}"}')
    (folder / "tokenizer.json").write_bytes(os.urandom(int(megabytes * 1e6)))
    for number in range(12):
        (folder / f"modeling_{number}.py").write_text("# made up\n")
    return folder


def placed(bundle: Opened, fleet: SshFleet, names: Sequence[str], what: str) -> Row:
    """Push once and return what it cost."""
    before = total(fleet.traffic().values())
    remotes = [fleet.remote(name) for name in names]
    targets = [PushTarget(remote.host, PLACE, remote) for remote in remotes]
    began = time.monotonic()
    rows = push(bundle, targets)
    seconds = time.monotonic() - began
    for row in rows:
        if row.error:
            raise row.error
    outcomes = tuple(row.outcome for row in rows)
    return Row(what, len(names), seconds, less(total(fleet.traffic().values()), before), outcomes)


def total(rows: Iterable[Traffic]) -> Traffic:
    """Return the sum of what all hosts cost."""
    every = tuple(rows)
    return Traffic(
        sum(row.connections for row in every),
        sum(row.commands for row in every),
        sum(row.sent for row in every),
        sum(row.received for row in every),
    )


def less(after: Traffic, before: Traffic) -> Traffic:
    """Return what was added between two sums."""
    return Traffic(
        after.connections - before.connections,
        after.commands - before.commands,
        after.sent - before.sent,
        after.received - before.received,
    )


def measure(folder: Path, count: int, megabytes: float) -> None:
    """Bring up as many hosts, push three times, print the rows, and take the hosts down."""
    make(read_here(model_folder(folder / "model", megabytes)), folder / "bundle.tgz")
    bundle = open_archive(folder / "bundle.tgz")
    standing = lab.up(folder / "lab", (f"b300-[{1:03}-{count:03}]",))
    fleet = SshFleet(load(standing.inventory).hosts, SshOptions())
    names = [host.name for host in standing.hosts]
    try:
        print(placed(bundle, fleet, names, "first"))
        print(placed(bundle, fleet, names, "again"))
        for host in standing.hosts:
            (host.root / PLACE[1:] / "modeling_3.py").write_text("# altered\n")
        print(placed(bundle, fleet, names, "altered"))
    finally:
        fleet.close()
        lab.down(folder / "lab", remove=True)


def main(arguments: Sequence[str]) -> int:
    """Measure every count that was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--targets", type=int, nargs="+", default=[1, 10, 100])
    parser.add_argument("--files-mb", type=float, default=KIMI_K3_MB)
    options = parser.parse_args(arguments)
    for count in options.targets:
        with tempfile.TemporaryDirectory(prefix="bringup-bench-") as folder:
            measure(Path(folder), count, options.files_mb)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
