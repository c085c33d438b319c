"""An acceptance run for people: a table with what to compare it with, and a page with plots."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..serve.acceptance import Accepted, Beside, thinned
from ..serve.aiperf import Aiperf
from ..serve.gaps import Recorded, Spread, quantile
from .svg import (
    Axis,
    Plot,
    band,
    bars,
    legend,
    line,
    rule,
    stems,
)

COLUMNS = 840


def ms(value: float | None) -> str:
    return "–" if value is None else f"{value:,.1f} ms"


def rate(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}"


def accept_view(run: Accepted, rows: Iterable[Beside]) -> RenderableType:
    """Return what came of a run: gaps idle and under load, comparisons, limits, trust."""
    summary = run.summary
    table = Table(box=None, pad_edge=False, padding=(0, 2))
    for name in ("", "p50", "p95", "p99", "worst", "tok/s a stream"):
        table.add_column(name, justify="left" if not name else "right")
    for name, phase in (("streams alone", summary.idle), ("under load", summary.load)):
        table.add_row(name, *_spread(phase.gaps), f"{phase.stream_tokens_s:.1f}")
    table.add_row("first token, stream", *_spread(summary.first), "")
    table.add_row("first token, long prompt", *_spread(summary.prompts), "")
    parts: list[RenderableType] = [Text(run.load.title, "bold"), table, Text("")]
    return Group(*parts, _compared(rows), Text(""), *_ends(run))


def _spread(found: Spread) -> tuple[str, str, str, str]:
    return ms(found.p50), ms(found.p95), ms(found.p99), ms(found.most)


def _compared(rows: Iterable[Beside]) -> RenderableType:
    table = Table(box=None, pad_edge=False, padding=(0, 2))
    for name in ("gap under load", "p95", "worst stall", "tok/s alone", "tok/s under load"):
        table.add_column(name, justify="left" if name == "gap under load" else "right")
    for row in rows:
        table.add_row(
            row.name, ms(row.gap_p95_ms), ms(row.stall_ms), rate(row.idle_tokens_s),
            rate(row.load_tokens_s),
        )  # fmt: skip
    return table


def _ends(run: Accepted) -> list[RenderableType]:
    summary = run.summary
    done = f"{summary.prompts_done} of {run.load.prompts} prompts, "
    done += f"{summary.prompt_tokens_s:,.0f} prompt tokens a second; {len(summary.errors)} errors"
    lines: list[RenderableType] = [Text(done), Text(trust(run), "dim")]
    if run.aiperf is not None:
        lines.append(Text(second_reader(run, run.aiperf), "red" if run.aiperf.error else "dim"))
    for stall in summary.stalls[:3]:
        words = f"stall of {stall.gap_ms:,.0f} ms at {stall.at:.1f} s in stream {stall.stream}"
        lines.append(Text(f"{words}, {stall.prompts} long prompts running", "dim"))
    for name, (least, most) in sorted(summary.gauges.items()):
        lines.append(Text(f"{name}: {least:g} to {most:g}", "dim"))
    if run.is_good:
        return [*lines, Text("accepted", "bold green")]
    return [*lines, *(Text(f"not accepted: {why}", "bold red") for why in run.reasons)]


def trust(run: Accepted) -> str:
    """Return the reader's own error in words."""
    seen = run.honesty
    parts = [f"reader: through {seen.through}, its clock late by {ms(seen.lag_p99_ms)} (p99)"]
    if seen.lag_most_ms is not None:
        parts.append(f"at most {ms(seen.lag_most_ms)}")
    if seen.difference_ms is not None:
        parts.append(
            f"mean gap {ms(seen.own_mean_ms)} here, {ms(seen.frontend_mean_ms)} by the frontend's "
            f"own histogram, whose p95 is at most {ms(seen.frontend_p95_at_most_ms)}"
        )
    else:
        parts.append("the frontend's own histogram was not read")
    return "; ".join(parts)


def second_reader(run: Accepted, seen: Aiperf) -> str:
    """Return what AIPerf saw of the streams alone, beside our own reader."""
    if seen.error:
        return f"AIPerf gave no result: {seen.error}"
    own = run.summary.idle.gaps
    return (
        f"AIPerf {seen.version}, streams alone: every gap p50 {ms(seen.gap_p50_ms)}, p95 "
        f"{ms(seen.gap_p95_ms)}, worst {ms(seen.gap_most_ms)} (here: {ms(own.p50)}, {ms(own.p95)}, "
        f"{ms(own.most)}); mean gap of a request {ms(seen.mean_gap_ms)}, p99 over requests "
        f"{ms(seen.mean_gap_p99_ms)}; first token {ms(seen.first_ms)}; "
        f"{rate(seen.tokens_s)} tokens/s"
    )


def page(run: Accepted, seen: Recorded, rows: Sequence[Beside]) -> str:
    """Return a whole page: verdict, figures, plots, comparisons. It needs no other file."""
    verdict = "accepted" if run.is_good else "not accepted"
    body = [
        f"<h1>{escape(run.deployment)}: {escape(run.load.title)}</h1>",
        f'<p class="verdict {"good" if run.is_good else "bad"}">{verdict}</p>',
        *(f'<p class="bad">{escape(why)}</p>' for why in run.reasons),
        f"<p>{escape(run.model)}, {escape(run.at)}. {escape(_counts(run))}</p>",
        "<h2>Gaps between tokens over time</h2>",
        timeline(run, seen),
        legend((("alone", "streams alone"), ("loaded", "under load"),
                ("prompt", "a long prompt is read"))),
        "<h2>How many gaps are longer</h2>",
        survival(seen),
        legend((("alone line", "streams alone"), ("loaded line", "under load"))),
        "<h2>Time to first token of each long prompt</h2>",
        first_tokens(seen),
        "<h2>Beside other runs</h2>",
        _rows_table(rows),
        "<h2>Figures</h2>",
        _figures(run),
        f"<p>{escape(trust(run))}.</p>",
        *([f"<p>{escape(second_reader(run, run.aiperf))}.</p>"] if run.aiperf else []),
        *_failed(run),
        "<h2>What served</h2>",
        _served(run),
    ]  # fmt: skip
    title = escape(f"{run.deployment} {run.load.name} {run.at}")
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
    return f"{head}<style>{STYLE}</style><body>{''.join(body)}</body></html>\n"


STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:960px;margin:2em auto;padding:0 1em;color:#1d2733}
h1{font-size:1.4em}h2{font-size:1.1em;margin-top:1.8em}svg{width:100%;height:auto}
table{border-collapse:collapse}
td,th{padding:.2em .9em;text-align:right;border-bottom:1px solid #dde3ea}
td:first-child,th:first-child,.words td,.words th{text-align:left}
.words td{overflow-wrap:anywhere}
.verdict{font-weight:700;font-size:1.2em}.good{color:#137333}.bad{color:#b3261e}
.frame{fill:#fbfcfd;stroke:#c6d0da}.grid{stroke:#e6ebf0}.label{font-size:12px;fill:#51606f}
polyline{fill:none;stroke-width:2}path{stroke-width:1.2;fill:none}
.alone{stroke:#2f7bbf}.loaded{stroke:#d9622b}rect.prompt{fill:#f3d9a4;stroke:none;opacity:.55}
rect.bar{fill:#8a6fc0}.rule{stroke:#b3261e;stroke-dasharray:5 4}
.key{margin-right:1.4em}.key::before{content:"";display:inline-block;width:14px;height:10px;
margin-right:6px;background:#2f7bbf}.key.loaded::before{background:#d9622b}
.key.prompt::before{background:#f3d9a4}
"""


def _counts(run: Accepted) -> str:
    summary = run.summary
    return (
        f"{run.load.streams} streams, {summary.prompts_done} of {run.load.prompts} prompts of "
        f"{run.load.prompt_tokens:,} tokens, {summary.tokens:,} tokens read, "
        f"{len(summary.errors)} errors."
    )


def timeline(run: Accepted, seen: Recorded) -> str:
    """Return the largest gap of each moment, on a scale of factors, prompts shaded behind."""
    gaps = [(t.at, t.gap_ms) for t in seen.tokens if t.gap_ms is not None]
    gaps.sort()
    most = max((gap for _, gap in gaps), default=1.0)
    plot = Plot(
        Axis(0.0, seen.ended, "seconds"),
        Axis(1.0, max(100.0, most * 1.3), "gap, ms", is_log=True),
        "largest gap between two tokens over time",
    )
    prompts = [a for a in seen.asked if a.kind == "prompt"]
    shades = [band(plot, a.sent, a.first or seen.ended, "prompt") for a in prompts]
    alone = thinned([gap for gap in gaps if gap[0] < seen.load_from], COLUMNS)
    loaded = thinned([gap for gap in gaps if gap[0] >= seen.load_from], COLUMNS)
    limit = run.load.limits.stall_ms
    marks = [*shades, stems(plot, alone, "alone"), stems(plot, loaded, "loaded")]
    if limit is not None and limit <= plot.y.high:
        marks.append(rule(plot, limit, f"limit of a stall, {limit:g} ms"))
    return plot.draw(marks)


def survival(seen: Recorded) -> str:
    """Return which share of gaps is longer than each length, idle and under load."""
    split = {
        "alone": sorted(t.gap_ms for t in seen.tokens if t.gap_ms and t.at < seen.load_from),
        "loaded": sorted(t.gap_ms for t in seen.tokens if t.gap_ms and t.at >= seen.load_from),
    }
    most = max((gaps[-1] for gaps in split.values() if gaps), default=10.0)
    least = min((gaps[0] for gaps in split.values() if gaps), default=1.0)
    plot = Plot(
        Axis(max(0.1, least * 0.8), most * 1.2, "gap, ms", is_log=True),
        Axis(0.01, 100.0, "% of gaps that are longer", is_log=True),
        "share of gaps longer than a length",
    )
    return plot.draw(line(plot, _tail(gaps), kind) for kind, gaps in split.items())


def _tail(ordered: list[float]) -> list[tuple[float, float]]:
    """Points of the tail, dense where it is thin."""
    if not ordered:
        return []
    shares = [n / 100 for n in range(100)] + [1 - 10 ** (-2 - n / 20) for n in range(41)]
    return [(quantile(ordered, share), (1 - share) * 100) for share in shares]


def first_tokens(seen: Recorded) -> str:
    """Return each long prompt's time to first token, in the order they were sent."""
    prompts = sorted((a for a in seen.asked if a.kind == "prompt"), key=lambda a: a.sent)
    values = [(a.first_ms or 0.0) / 1000 for a in prompts]
    plot = Plot(
        Axis(0.5, len(values) + 0.5, "prompt, in the order sent", is_whole=True),
        Axis(0.0, max(values, default=1.0) * 1.1 or 1.0, "seconds"),
        "time to first token of each long prompt",
    )
    return plot.draw((bars(plot, values, "bar"),))


def _rows_table(rows: Sequence[Beside]) -> str:
    head = "<tr><th></th><th>gap p95</th><th>worst stall</th><th>tok/s alone</th>"
    lines = [
        f"<tr><td>{escape(row.name)}</td><td>{ms(row.gap_p95_ms)}</td><td>{ms(row.stall_ms)}</td>"
        f"<td>{rate(row.idle_tokens_s)}</td><td>{rate(row.load_tokens_s)}</td></tr>"
        for row in rows
    ]
    return f"<table>{head}<th>tok/s under load</th></tr>{''.join(lines)}</table>"


def _failed(run: Accepted) -> list[str]:
    """Return each way in which requests failed, with how many did."""
    counted = Counter(run.summary.errors)
    if not counted:
        return []
    lines = [f"<li>{count} × {escape(why)}</li>" for why, count in counted.most_common()]
    return ["<h2>Requests that failed</h2>", f"<ul>{''.join(lines)}</ul>"]


def _served(run: Accepted) -> str:
    """Return which image and configuration every worker ran, so that the page stands alone."""
    keys = ("host", "role", "image", "config")
    head = "".join(f"<th>{key}</th>" for key in keys)
    lines = [
        "<tr>" + "".join(f"<td>{escape(str(one.get(key, '')))}</td>" for key in keys) + "</tr>"
        for one in run.context.get("workers", ())
    ]
    return f'<table class="words"><tr>{head}</tr>{"".join(lines)}</table>'


def _figures(run: Accepted) -> str:
    summary = run.summary
    rows = (
        ("gap, streams alone", summary.idle.gaps),
        ("gap, under load", summary.load.gaps),
        ("first token of a stream", summary.first),
        ("first token of a long prompt", summary.prompts),
    )
    head = "<tr><th></th><th>count</th><th>mean</th><th>p50</th><th>p95</th><th>p99</th>"
    lines = [
        f"<tr><td>{name}</td><td>{found.count:,}</td><td>{ms(found.mean)}</td>"
        + "".join(f"<td>{value}</td>" for value in _spread(found))
        + "</tr>"
        for name, found in rows
    ]
    return f"<table>{head}<th>worst</th></tr>{''.join(lines)}</table>"
