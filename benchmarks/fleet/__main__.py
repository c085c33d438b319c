"""Measure bringup, plain ssh, two libraries, pyinfra and ansible-core side by side on real sshd.

    python -m benchmarks.fleet --hosts 1,10,50,100 --rtt 0,20 --reps 5 --time-limit 1800 --out docs

Needs root (network namespaces), openssh-server and iproute2; pip fetches the other tools into
--work. Writes OUT/benchmarks/fleet.md, a plot for each job and distance, and the runs themselves.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

from . import schedule, starts, work
from .goals import Live
from .hosts import Fleet, fleet
from .report import Run, Skipped
from .rivals import JOBS, NAMES, Tool, install, tools
from .schedule import Case
from .written import Results, read_results, write_results

OLD = 1_000_000_000
"""A time long past, to see that a file was not written again."""


GRACE_S = 60.0
"""How much longer than the time for all a run may take that began within it."""


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
    before = running.wire_bytes()
    done = subprocess.run(
        [*words, *tool.words[job]],
        check=True, capture_output=True, text=True, env=environment(running, tool),
    )  # fmt: skip
    said = json.loads(done.stdout)
    fault = f"exit {said['code']}" if said["code"] else fault_of(job, running)
    wire_kb = (running.wire_bytes() - before) / 1000 / len(running.hosts)
    return Run(tool.name, job, len(running.hosts), rtt_ms, said["wall_s"], said["cpu_s"],
               said["peak_mb"], wire_kb, fault)  # fmt: skip


def environment(running: Fleet, tool: Tool) -> dict[str, str]:
    """Return the variables of a run: a home of its own, and no agent."""
    given = {**os.environ, "HOME": str(running.folder), **tool.environment}
    given.pop("SSH_AUTH_SOCK", None)
    return given


@dataclass(slots=True)
class Bench:
    """One measurement: what is asked for, what was measured, and what there was no time for."""

    given: argparse.Namespace
    results: Results
    runs: list[Run] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)

    @property
    def left_s(self) -> float | None:
        limit: float | None = self.given.time_limit
        return None if limit is None else limit - (time.monotonic() - self.began)

    def cases(self, places: list[tuple[int, float]]) -> list[Case]:
        names = self.given.tools or NAMES
        return [
            Case(n, rtt_ms, tool, job) for n, rtt_ms in places for tool in names for job in JOBS
        ]

    def measure(self) -> Iterator[None]:
        """Measure one fleet after the other, smallest first; the rest is planned anew each time."""
        places = list(product(self.given.hosts, self.given.rtt))
        for at, place in enumerate(places):
            plan = schedule.counts(self.cases(places[at:]), self.left_s, self.given.reps, self.runs)
            here = {case: n for case, n in plan.items() if (case.hosts, case.rtt_ms) == place}
            self._leave(case for case, count in here.items() if not count)
            if any(here.values()):
                self._one_fleet(*place, here)
            yield

    def _leave(self, cases: Iterable[Case]) -> None:
        for case in cases:
            takes = schedule.expected(case, self.runs)
            left = Skipped(case.tool, case.job, case.hosts, case.rtt_ms, takes)
            self.results.skipped.append(left)

    def _one_fleet(self, count: int, rtt_ms: float, plan: dict[Case, int]) -> None:
        """Let tools take turns, as often as each is to run."""
        in_memory = not self.given.disk
        with fleet(self.given.work / "fleet", count, rtt_ms, in_memory=in_memory) as running:
            every = {tool.name: tool for tool in tools(running, self.given.work)}
            for number in range(max(plan.values())):
                for case in sorted(case for case, reps in plan.items() if reps > number):
                    self._run(case, running, every[case.tool])
            if count in (self.given.hosts[0], self.given.hosts[-1]):
                self._live(running, every["bringup"], count, rtt_ms)

    def _run(self, case: Case, running: Fleet, tool: Tool) -> None:
        """Run one case once, unless the time is up."""
        left = self.left_s
        if left is not None and left <= 0:
            if not any(r for r in self.runs if Case(r.hosts, r.rtt_ms, r.tool, r.job) == case):
                self._leave([case])
            return
        limit = self.given.limit if left is None else min(self.given.limit, left + GRACE_S)
        run = one(tool, case.job, running, case.rtt_ms, limit)
        print(run, file=sys.stderr, flush=True)
        self.runs.append(run)
        self.results.runs.append(run)

    def _live(self, running: Fleet, tool: Tool, count: int, rtt_ms: float) -> None:
        """Time open lines: all tools where there is one host, ours over the whole fleet."""
        words = [*running.prefix, sys.executable, "-m", "benchmarks.fleet.live"]
        words += [str(running.folder), *(("--only-ours",) if count > 1 else ())]
        done = subprocess.run(
            words, check=True, stdout=subprocess.PIPE, text=True, env=environment(running, tool)
        )
        for line in done.stdout.splitlines():
            said = json.loads(line)
            self.results.live.append(Live(said["tool"], said["what"], rtt_ms, count, said["ms"]))
            print(self.results.live[-1], file=sys.stderr, flush=True)


def main() -> None:
    """Measure and report."""
    given = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that every fleet is taken down
    given.work.mkdir(parents=True, exist_ok=True)
    install(given.work)
    results = read_results(given.out) if given.add else Results()
    results.starts = starts.measured()
    for _ in Bench(given, results).measure():
        write_results(results, given.out, given.work)  # a run that is stopped keeps what it has


def arguments() -> argparse.Namespace:
    """Return what is asked for."""
    assert __doc__
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    numbers = {"type": lambda text: [float(word) for word in text.split(",")]}
    parser.add_argument("--hosts", type=lambda t: [int(w) for w in t.split(",")], default=[1, 10])
    parser.add_argument("--rtt", default=[0.0, 20.0], help="round trips in ms", **numbers)
    parser.add_argument("--reps", type=int, default=3, help="most runs of each")
    parser.add_argument("--time-limit", type=float, help="seconds for all; long runs are left out")
    parser.add_argument("--limit", type=float, default=600, help="most seconds of one run")
    place = Path(tempfile.gettempdir(), "bringup-fleet-benchmark")
    parser.add_argument("--work", type=Path, default=place)
    parser.add_argument("--out", type=Path, default=Path("docs"))
    parser.add_argument("--tools", type=lambda text: text.split(","), help="as bringup,ssh")
    parser.add_argument("--disk", action="store_true", help="hosts' files on disk, not in memory")
    parser.add_argument("--add", action="store_true", help="add to the runs already in OUT")
    return parser.parse_args()


if __name__ == "__main__":
    main()
