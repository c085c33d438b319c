"""Measure bringup, plain ssh, pyinfra and ansible-core side by side on real sshd hosts.

    python -m benchmarks.fleet --hosts 1,10,50,100 --rtt 0,20 --reps 5 --out docs

Needs root (network namespaces), openssh-server and iproute2; pip fetches the other tools into
--work. Writes OUT/benchmarks/fleet.md, a plot for each job and distance, and the runs themselves.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import product
from pathlib import Path

from . import report, work
from .hosts import Fleet, fleet
from .report import Run
from .rivals import JOBS, Tool, install, tools, versions

OLD = 1_000_000_000
"""A time long past, to see that a file was not written again."""


def prepare(job: str, running: Fleet) -> None:
    """Leave every host as the job is to find it."""
    for name, address in running.hosts:
        place = running.place(name)
        shutil.rmtree(place, ignore_errors=True)
        if job == "same":
            place.mkdir(parents=True, mode=0o755)
            for file, content in work.wanted(name, address).items():
                (place / file).write_bytes(content)
                (place / file).chmod(0o644)
                os.utime(place / file, (OLD, OLD))


def fault_of(job: str, running: Fleet) -> str:
    """Return what is wrong with the files on the hosts after a job, "" for nothing."""
    for name, address in () if job == "facts" else running.hosts:
        for file, content in work.wanted(name, address).items():
            path = running.place(name) / file
            if not path.exists() or path.read_bytes() != content:
                return f"{name}: {file} is not as wanted"
            if job == "same" and path.stat().st_mtime != OLD:
                return f"{name}: {file} was written again"
    return ""


def one(tool: Tool, job: str, running: Fleet, rtt_ms: float, limit_s: float) -> Run:
    """Run one tool once, and see that every host is right."""
    prepare(job, running)
    log = running.folder / f"{tool.name}-{job}.log"
    measure = Path(__file__).with_name("measure.py")
    words = [*running.prefix, sys.executable, str(measure), str(limit_s), str(log)]
    environment = {**os.environ, "HOME": str(running.folder), **tool.environment}
    environment.pop("SSH_AUTH_SOCK", None)
    before = running.wire_bytes()
    done = subprocess.run(
        [*words, *tool.words[job]], check=True, capture_output=True, text=True, env=environment
    )
    said = json.loads(done.stdout)
    fault = f"exit {said['code']}" if said["code"] else fault_of(job, running)
    wire_kb = (running.wire_bytes() - before) / 1000 / len(running.hosts)
    return Run(tool.name, job, len(running.hosts), rtt_ms, said["wall_s"], said["cpu_s"],
               said["peak_mb"], wire_kb, fault)  # fmt: skip


def measured(given: argparse.Namespace) -> Iterator[tuple[Run, ...]]:
    """Yield the runs of one point after the other, smallest fleet first.

    Tools take turns. One that is past its budget at a point sits out its other repetitions; one
    whose single run took longer than the budget sits out larger fleets.
    """
    slow: set[tuple[str, str, int]] = set()
    for count, rtt_ms in product(given.hosts, given.rtt):
        with fleet(given.work / "fleet", count, rtt_ms) as running:
            runs: list[Run] = []
            for _, job in product(range(given.reps), JOBS):
                for tool in chosen(running, given):
                    own = [run for run in runs if (run.tool, run.job) == (tool.name, job)]
                    if (tool.name, job, count) in slow or sum(r.wall_s for r in own) > given.budget:
                        continue
                    runs.append(one(tool, job, running, rtt_ms, given.limit))
                    print(runs[-1], file=sys.stderr, flush=True)
        slow |= {
            (run.tool, run.job, larger)
            for run in runs
            if run.wall_s > given.budget
            for larger in given.hosts
            if larger > count
        }
        yield tuple(runs)


def chosen(running: Fleet, given: argparse.Namespace) -> tuple[Tool, ...]:
    """Return the tools asked for, all by default."""
    every = tools(running, given.work)
    return tuple(tool for tool in every if not given.tools or tool.name in given.tools)


def earlier(given: argparse.Namespace) -> list[Run]:
    """Return the runs that this one is added to."""
    path = given.out / "benchmarks/fleet-runs.jsonl"
    if not given.add or not path.exists():
        return []
    return [Run(**json.loads(line)) for line in path.read_text().splitlines()]


def write_report(runs: list[Run], given: argparse.Namespace) -> None:
    """Write the table, the plots and the runs."""
    folder = given.out / "benchmarks"
    folder.mkdir(parents=True, exist_ok=True)
    told = ", ".join(f"{name} {text}" for name, text in versions(given.work).items())
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    cores = len(os.sched_getaffinity(0))
    command = " ".join(["python -m benchmarks.fleet", *sys.argv[1:]])
    lines = [
        f"Made {datetime.now(UTC):%Y-%m-%d} by `{command}` on {cores} cores, Linux"
        f" {platform.release()}, Python {platform.python_version()}, {told}."
        f" Load averages at the end: {load}. Medians (least–most); × is how many times what"
        " bringup took. All hosts run on the same cores.\n"
    ]
    for job in JOBS:
        lines += [f"\n### {report.TITLES[job]}\n\n", report.table(runs, job), "\n"]
        lines += [report.round_trips(runs, job)]
        for rtt_ms in sorted({run.rtt_ms for run in runs}):
            name = f"{job}-rtt{rtt_ms:g}.svg"
            (folder / name).write_text(report.plot(runs, job, rtt_ms))
            lines.append(f"\n![{report.TITLES[job]}]({name})\n")
    faults = [f"- {r.tool}, {r.job}, {r.hosts} hosts: {r.fault}\n" for r in runs if r.fault]
    lines += ["\n### Runs that failed\n\n", *faults] if faults else []
    (folder / "fleet.md").write_text("".join(lines))
    rows = "".join(json.dumps(asdict(run)) + "\n" for run in runs)
    (folder / "fleet-runs.jsonl").write_text(rows)


def main() -> None:
    """Measure and report."""
    assert __doc__
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    numbers = {"type": lambda text: [float(word) for word in text.split(",")]}
    parser.add_argument("--hosts", type=lambda t: [int(w) for w in t.split(",")], default=[1, 10])
    parser.add_argument("--rtt", default=[0.0, 20.0], help="round trips in ms", **numbers)
    parser.add_argument("--reps", type=int, default=3)
    parser.add_argument("--budget", type=float, default=60, help="seconds of one tool at one point")
    parser.add_argument("--limit", type=float, default=600, help="most seconds of one run")
    place = Path(tempfile.gettempdir(), "bringup-fleet-benchmark")
    parser.add_argument("--work", type=Path, default=place)
    parser.add_argument("--out", type=Path, default=Path("docs"))
    parser.add_argument("--tools", type=lambda text: text.split(","), help="as bringup,ssh")
    parser.add_argument("--add", action="store_true", help="add to the runs already in OUT")
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    install(given.work)
    runs = earlier(given)
    for more in measured(given):
        runs += more
        write_report(runs, given)  # a run that is stopped has written what it measured


if __name__ == "__main__":
    main()
