"""Topologies side by side, for people: one table, and what stopped those that did not serve."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..bench.derive import SHORT
from ..bench.table import FAILED, MEASURED, METRICS, Bench, Row, best
from ..bench.traffic import FIGURES
from ..engines.topology_load import Topology
from .ready import span

HEADS = {
    "output_tokens_s": "output tok/s",
    "tpot_ms": "TPOT",
    "itl_p95_ms": "ITL p95",
    "itl_p99_ms": "ITL p99",
    "ttft_ms": "TTFT",
}
"""What each column of the table is called."""


def shown(metric: str, value: float | None) -> str:
    """Return a value with its unit, a dash where there is none."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if metric.endswith("_s") else f"{value:,.1f} ms"


def bench_view(bench: Bench, page: str = "") -> RenderableType:
    """Return the table, causes, the report's figures and where the page lies."""
    parts: list[RenderableType] = [Text(title(bench), "bold"), Text(about(bench), "dim")]
    parts += [Text(""), _table(bench), Text("")]
    parts += [_stopped(names, row) for names, row in stopped(bench)]
    parts += [Text(line, "dim") for line in figures(bench)]
    if page:
        parts.append(Text(f"page  {page}", "dim"))
    return Group(*parts)


def title(bench: Bench) -> str:
    return f"{bench.deployment} on {bench.host}: {bench.subject.model}"


def about(bench: Bench) -> str:
    """Return what was measured with, in one line."""
    one = bench.subject
    gpus = f"{one.gpus} × {one.gpu}" if one.gpu else f"{one.gpus} GPUs, kind not known"
    version = f"{one.engine} {one.engine_version}".strip()
    parts = [gpus, f"driver {one.driver}" if one.driver else "", version, one.image[:19], bench.at]
    return ", ".join(filter(None, parts))


def _table(bench: Bench) -> RenderableType:
    table = Table(box=None, pad_edge=False, padding=(0, 2))
    for name in ("topology", "traffic"):
        table.add_column(name, no_wrap=True)
    for name in (*HEADS.values(), "start"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in bench.rows:
        for cells in _cells(bench, row):
            table.add_row(*cells)
    return table


def _cells(bench: Bench, row: Row) -> Iterator[tuple[RenderableType, ...]]:
    short = SHORT[row.topology]
    start = span(row.start_s) if row.start_s is not None else "–"
    if not row.results:
        style = "bold red" if row.state == FAILED else "yellow"
        yield Text(short), Text(row.state, style), *([Text("–")] * len(HEADS)), Text(start)
    for one in row.results:
        traffic = next((t.title for t in bench.traffic if t.name == one.traffic), one.traffic)
        values = (_cell(bench, row.topology, one.traffic, m, getattr(one, m)) for m in METRICS)
        style = "red" if one.fault else ""
        yield Text(short), Text(traffic, style), *values, Text(start)
        short = start = ""


def _cell(
    bench: Bench, topology: Topology, traffic: str, metric: str, value: float | None
) -> RenderableType:
    style = "bold green" if best(bench, traffic, metric) is topology else ""
    return Text(shown(metric, value), style)


def stopped(bench: Bench) -> list[tuple[str, Row]]:
    """Return what has no whole result: names of topologies with the same reason, and a row."""
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in bench.rows:
        if row.state != MEASURED:
            groups.setdefault((row.state, row.why, row.evidence), []).append(row)
    return [(", ".join(SHORT[row.topology] for row in rows), rows[0]) for rows in groups.values()]


def _stopped(names: str, row: Row) -> RenderableType:
    """Return why topologies have no whole result, and what to do."""
    grid = Table.grid(padding=(0, 1))
    grid.add_column(width=9, style="dim")
    grid.add_column(overflow="fold")
    style = "bold red" if row.state == FAILED else "bold yellow"
    head = Text(row.why, "bold").append(f"  {row.cause}" if row.cause else "", "dim")
    grid.add_row(Text(row.state, style), Text(f"{names}: ").append_text(head))
    for name, text in (("saw", row.evidence), ("do", row.fix), ("log", row.log)):
        if text:
            grid.add_row(name, Text(text, "green" if name == "do" else ""))
    return Padding(grid, (0, 0, 1, 0))


def figures(bench: Bench) -> list[str]:
    """Return the report's figures for the traffic that was run: of this model, else of all."""
    lines = []
    names = {traffic.name: traffic for traffic in bench.traffic}
    models = dict.fromkeys(figure.model for figure in FIGURES)
    for model in [one for one in models if one in bench.subject.model] or models:
        for name, traffic in names.items():
            own = [f for f in FIGURES if f.model == model and f.traffic == name]
            each = (f"{SHORT[f.topology]} {f.output_tokens_s:,.0f} at {f.tpot_ms:g} ms"
                    for f in own)  # fmt: skip
            if own:
                lines.append(f"2×B200 report, {model}, {traffic.title}: {', '.join(each)}")
    return lines


def plan_view(bench: Bench, planned: Iterable[Any]) -> RenderableType:
    """Return what a run would do."""
    every = ", ".join(f"{one.title} × {one.prompts}" for one in bench.traffic)
    parts: list[RenderableType] = [
        Text(title(bench), "bold"), Text(about(bench), "dim"), Text(f"each: {every}", "dim"),
    ]  # fmt: skip
    for one in planned:
        head = Text(f"\n{SHORT[one.topology]}: ").append(one.state, "bold")
        parts.append(head.append(f": {one.why}" if one.why else ""))
        parts += [Padding(Text(line, "dim"), (0, 0, 0, 2)) for line in one.commands]
    return Group(*parts)


def plan_document(bench: Bench, planned: Iterable[Any]) -> dict[str, Any]:
    """Return what a run would do as plain data."""
    return {
        "schema": "bringup.bench-plan/1",
        "deployment": bench.deployment,
        "host": bench.host,
        "subject": bench.subject,
        "traffic": bench.traffic,
        "topologies": [
            {"topology": SHORT[one.topology], "state": one.state, "why": one.why,
             "commands": one.commands}
            for one in planned
        ],
    }  # fmt: skip
