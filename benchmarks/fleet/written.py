"""What was measured, as it is kept and as people read it."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from . import report
from .goals import Live, goals_table, live_table
from .report import Run, Skipped
from .rivals import JOBS, versions

RUNS, LIVE = "benchmarks/fleet-runs.jsonl", "benchmarks/fleet-live.jsonl"


@dataclass(slots=True)
class Results:
    """All that is reported. `starts` are wall and CPU of each program, in milliseconds."""

    runs: list[Run] = field(default_factory=list)
    live: list[Live] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    starts: dict[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def times(self) -> list[Live]:
        """Times over lines, and those of starts."""
        return [*self.live, *(Live("bringup", n, 0, 0, ms) for n, (ms, _) in self.starts.items())]


def read_results(out: Path) -> Results:
    """Return what an earlier measurement left, to be added to."""
    return Results([Run(**row) for row in _rows(out / RUNS)],
                   [Live(**row) for row in _rows(out / LIVE)])  # fmt: skip


def _rows(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def write_results(results: Results, out: Path, work: Path) -> None:
    """Write the tables, the plots and the runs."""
    folder = out / "benchmarks"
    folder.mkdir(parents=True, exist_ok=True)
    parts = [_heading(work), "\n## Goals\n\n", goals_table(results.runs, results.times)]
    for job in JOBS:
        parts += _job(results, job, folder)
    parts += ["\n## Open lines and starts\n\n", live_table(results.times)]
    faults = [f"- {r.tool}, {r.job}, {r.hosts} hosts: {r.fault}\n" for r in results.runs if r.fault]
    parts += ["\n## Runs that failed\n\n", *faults] if faults else []
    (folder / "fleet.md").write_text("".join(parts))
    _keep(out / RUNS, results.runs)
    _keep(out / LIVE, results.live)


def _keep(path: Path, rows: Sequence[Run | Live]) -> None:
    path.write_text("".join(json.dumps(asdict(row)) + "\n" for row in rows))


def _heading(work: Path) -> str:
    told = ", ".join(f"{name} {text}" for name, text in versions(work).items())
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    command = " ".join(["python -m benchmarks.fleet", *sys.argv[1:]])
    return (
        f"Made {datetime.now(UTC):%Y-%m-%d} by `{command}` on {len(os.sched_getaffinity(0))} cores,"
        f" Linux {platform.release()}, Python {platform.python_version()}, {told}. Load averages"
        f" at the end: {load}. Medians (least–most); × is how many times what bringup took. All"
        " hosts run on the same cores.\n"
    )


def _job(results: Results, job: str, folder: Path) -> list[str]:
    runs = results.runs
    parts = [f"\n## {report.TITLES[job]}\n\n", report.table(runs, job, results.skipped), "\n"]
    parts.append(report.round_trips(runs, job))
    for rtt_ms in sorted({run.rtt_ms for run in runs}):
        name = f"{job}-rtt{rtt_ms:g}.svg"
        (folder / name).write_text(report.plot(runs, job, rtt_ms))
        parts.append(f"\n![{report.TITLES[job]}]({name})\n")
    return parts
