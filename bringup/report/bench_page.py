"""A run over topologies as one page with plots; it needs no other file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from ..bench.derive import SHORT
from ..bench.table import METRICS, Bench, Row, best
from .accept import STYLE
from .bench import HEADS, about, figures, shown, stopped, title
from .ready import span
from .svg import HEIGHT, LEFT, RIGHT, WIDTH, Axis, Plot, legend, text

OWN_STYLE = """
rect.dp{fill:#2f7bbf}rect.tp{fill:#8a6fc0}rect.pair{fill:#d9622b}
.key.dp::before{background:#2f7bbf}.key.tp::before{background:#8a6fc0}
.key.pair::before{background:#d9622b}
td:nth-child(2),th:nth-child(2){text-align:left}td.best{font-weight:700;color:#137333}td.why{text-align:left;max-width:46em}
pre{background:#f4f6f8;padding:.6em;overflow-x:auto;font-size:12px;white-space:pre-wrap}
svg{width:100%;min-width:0}details{margin:.4em 0}.value{font-size:12px;fill:#1d2733}
"""

NO_TICKS = Axis(0.2, 0.4, "", is_whole=True)
"""An axis without a whole number: groups are named instead."""

KIND = {"dp": "dp", "tp": "tp", "1p1d": "pair"}  # a CSS class does not begin with a digit


def page(bench: Bench) -> str:
    """Return a whole page: table, plots, causes, host facts and exact commands."""
    keys = [(KIND[SHORT[row.topology]], SHORT[row.topology]) for row in bench.rows]
    body = [
        f"<h1>{escape(title(bench))}</h1>",
        f"<p>{escape(about(bench))}.</p>",
        _table(bench),
        *(_stopped(names, row) for names, row in stopped(bench)),
        f"<p>{legend(keys)}</p>",
        *(_plot(bench, metric) for metric in ("output_tokens_s", "tpot_ms")),
        *(_plot(bench, metric) for metric in ("itl_p95_ms", "itl_p99_ms")),
        _starts(bench),
        *(f"<p><small>{escape(line)}</small></p>" for line in figures(bench)),
        "<h2>Exact commands</h2>",
        *(_commands(row) for row in bench.rows),
        "<h2>The host</h2>",
        _facts(bench),
    ]
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title(bench))}'
    return f"{head}</title><style>{STYLE}{OWN_STYLE}</style><body>{''.join(body)}</body></html>\n"


def _table(bench: Bench) -> str:
    heads = "".join(f"<th>{escape(name)}</th>" for name in (*HEADS.values(), "start"))
    lines = [f"<tr><th>topology</th><th>traffic</th>{heads}</tr>"]
    for row in bench.rows:
        name, start = SHORT[row.topology], _start(row)
        if not row.results:
            cells = f'<td class="bad">{escape(row.state)}</td>' + "<td>–</td>" * len(HEADS)
            lines.append(f"<tr><td>{name}</td>{cells}<td>{start}</td></tr>")
        for one in row.results:
            found = "".join(
                f'<td class="{"best" if best(bench, one.traffic, m) is row.topology else ""}">'
                f"{shown(m, getattr(one, m))}</td>"
                for m in METRICS
            )
            called = next((t.title for t in bench.traffic if t.name == one.traffic), one.traffic)
            lines.append(
                f"<tr><td>{name}</td><td>{escape(called)}</td>{found}<td>{start}</td></tr>"
            )
    return f"<table>{''.join(lines)}</table>"


def _start(row: Row) -> str:
    return span(row.start_s) if row.start_s is not None else "–"


def _stopped(names: str, row: Row) -> str:
    told = [f'<p><b class="bad">{escape(names)} {escape(row.state)}</b>: {escape(row.why)}']
    told += [f" <small>{escape(row.cause)}</small>"] if row.cause else []
    told += [f"<br>saw: <code>{escape(row.evidence)}</code>"] if row.evidence else []
    told += [f"<br>do: {'<br>'.join(map(escape, row.fix.splitlines()))}"] if row.fix else []
    return "".join(told) + "</p>"


def _plot(bench: Bench, metric: str) -> str:
    groups = [
        (traffic.title, [(row, getattr(one, metric) if one else None)
                         for row in bench.rows for one in (row.of(traffic.name),)])
        for traffic in bench.traffic
    ]  # fmt: skip
    unit = "tokens a second, more is better" if METRICS[metric] else "ms, less is better"
    return _titled(HEADS[metric], unit, groups, metric)


def _starts(bench: Bench) -> str:
    groups = [("until it served", [(row, row.start_s) for row in bench.rows])]
    return _titled("Start", "seconds, less is better", groups, "start")


def _titled(
    name: str, unit: str, groups: Sequence[tuple[str, list[tuple[Row, float | None]]]], metric: str
) -> str:
    head = name[:1].upper() + name[1:]
    return f"<h2>{escape(head)} <small>({unit})</small></h2>{grouped(name, unit, groups, metric)}"


def grouped(
    name: str, unit: str, groups: Sequence[tuple[str, list[tuple[Row, float | None]]]], metric: str
) -> str:
    """Return bars side by side, a group each traffic, with the value on each and why none."""
    values = [value for _, bars in groups for _, value in bars if value is not None]
    plot = Plot(NO_TICKS, Axis(0.0, max(values, default=1.0) * 1.15 or 1.0, unit), name)
    wide = (WIDTH - LEFT - RIGHT) / max(1, len(groups))
    marks: list[str] = []
    for place, (label, bars) in enumerate(groups):
        left = LEFT + place * wide
        marks += _bars(plot, left, wide / (len(bars) + 1), bars, metric)
        marks.append(text(left + wide / 2, HEIGHT - 24, label, "middle"))
    return plot.draw(marks)


def _bars(
    plot: Plot, left: float, step: float, bars: list[tuple[Row, float | None]], metric: str
) -> Iterable[str]:
    width = min(70.0, step * 0.8)
    _, base = plot.at(0.0, 0.0)
    for place, (row, value) in enumerate(bars, 1):
        middle = left + place * step
        if value is None:
            yield text(middle, base - 6, row.state if not row.results else "–", "middle")
            continue
        _, top = plot.at(0.0, value)
        yield (
            f'<rect class="{KIND[SHORT[row.topology]]}" x="{middle - width / 2:.1f}" '
            f'y="{top:.1f}" width="{width:.1f}" height="{max(base - top, 0.5):.1f}"/>'
        )
        called = f"{value:,.1f} s" if metric == "start" else shown(metric, value)
        yield text(middle, top - 4, called, "middle", "value")


def _commands(row: Row) -> str:
    told = [*row.commands, *(one.command for one in row.results)]
    if not told:
        return ""
    blocks = "".join(f"<pre>{escape(one)}</pre>" for one in told)
    return f"<details open><summary>{SHORT[row.topology]}</summary>{blocks}</details>"


def _facts(bench: Bench) -> str:
    rows = "".join(
        f'<tr><td>{escape(name)}</td><td class="why">{escape(line)}</td></tr>'
        for name, line in bench.facts.items()
    )
    return f"<details><summary>{len(bench.facts)} facts</summary><table>{rows}</table></details>"
