"""Medians and spread of the runs: a table in Markdown, and plots as SVG."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

TITLES = {
    "facts": "Gather facts",
    "same": "Deploy, nothing to change",
    "deploy": "First deploy (20 files, 1.4 MB)",
}
COLORS = {"bringup": "#0a7d43", "ssh": "#555555", "asyncssh": "#3060b0", "fabric": "#8040a0",
          "pyinfra": "#b8860b", "ansible": "#b03030"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Run:
    """One run of one tool. `fault` is "" where its result was right on every host."""

    tool: str
    job: str
    hosts: int
    rtt_ms: float
    wall_s: float
    cpu_s: float
    peak_mb: float
    wire_kb: float  # a host, both ways
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A run for which there was no time, and the seconds that it would have taken."""

    tool: str
    job: str
    hosts: int
    rtt_ms: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Point:
    """All right runs of one tool at one point."""

    tool: str
    runs: tuple[Run, ...]

    def middle(self, name: str) -> float:
        values: list[float] = [getattr(run, name) for run in self.runs]
        return median(values)

    def spread(self, name: str) -> str:
        values = [getattr(run, name) for run in self.runs]
        few = f"{median(values):.2f}"
        return few if len(values) == 1 else f"{few} ({min(values):.2f}–{max(values):.2f})"


def points(runs: Iterable[Run], job: str, hosts: int, rtt_ms: float) -> tuple[Point, ...]:
    """Return the points of one job at one size and distance, in the order of the colours."""
    here = [r for r in runs if (r.job, r.hosts, r.rtt_ms, r.fault) == (job, hosts, rtt_ms, "")]
    found = (Point(tool, tuple(r for r in here if r.tool == tool)) for tool in COLORS)
    return tuple(point for point in found if point.runs)


HEAD = """
| hosts | RTT ms | tool | wall s | × | controller CPU s | × | peak MB | KB a host | runs |
|---|---|---|---|---|---|---|---|---|---|
"""


def table(runs: Sequence[Run], job: str, skipped: Sequence[Skipped] = ()) -> str:
    """Return one job's table. × is how many times what bringup took."""
    rows = []
    places = {(run.rtt_ms, run.hosts) for run in runs if run.job == job}
    places |= {(left.rtt_ms, left.hosts) for left in skipped if left.job == job}
    for rtt_ms, hosts in sorted(places):
        own = points(runs, job, hosts, rtt_ms)
        base = next((point for point in own if point.tool == "bringup"), None)
        for point in own:
            ratios = [_ratio(point, base, name) for name in ("wall_s", "cpu_s")]
            cells = (hosts, f"{rtt_ms:g}", point.tool, point.spread("wall_s"), ratios[0],
                     point.spread("cpu_s"), ratios[1], f"{point.middle('peak_mb'):.0f}",
                     f"{point.middle('wire_kb'):.0f}", len(point.runs))  # fmt: skip
            rows.append("| " + " | ".join(map(str, cells)) + " |\n")
        for left in skipped:
            if (left.job, left.hosts, left.rtt_ms) == (job, hosts, rtt_ms):
                told = f"not run, would take about {_about(left.seconds)}"
                rows.append(f"| {hosts} | {rtt_ms:g} | {left.tool} | {told} | | | | | | 0 |\n")
    return HEAD.lstrip() + "".join(rows)


def _about(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"


def _ratio(point: Point, base: Point | None, name: str) -> str:
    return f"{point.middle(name) / base.middle(name):.1f}" if base else ""


def round_trips(runs: Sequence[Run], job: str) -> str:
    """Return a line: round trips a host, from how much longer one host takes at a distance."""
    distances = sorted({run.rtt_ms for run in runs if run.rtt_ms})
    if not distances:
        return ""
    far = distances[-1]
    near_points = {point.tool: point for point in points(runs, job, 1, 0)}
    told = [
        f"{point.tool} {longer / (far / 1000):.0f}"
        for point in points(runs, job, 1, far)
        if point.tool in near_points
        and (longer := point.middle("wall_s") - near_points[point.tool].middle("wall_s")) > 0
    ]
    return f"Round trips one after the other, on one host: {', '.join(told)}.\n" if told else ""


WIDTH, HEIGHT, LEFT, TOP = 640, 320, 60, 40


def plot(runs: Sequence[Run], job: str, rtt_ms: float) -> str:
    """Return wall time over hosts for every tool, both axes logarithmic, as SVG."""
    from math import log10

    sizes = sorted({r.hosts for r in runs if (r.job, r.rtt_ms) == (job, rtt_ms)})
    marks = [(n, p.tool, p.middle("wall_s")) for n in sizes for p in points(runs, job, n, rtt_ms)]
    if not marks:
        return ""
    low, high = min(m[2] for m in marks) * 0.7, max(m[2] for m in marks) * 1.4
    across = max(1e-9, log10(sizes[-1] / sizes[0]))

    def x(hosts: int) -> float:
        return LEFT + (WIDTH - LEFT - 110) * log10(hosts / sizes[0]) / across

    def y(seconds: float) -> float:
        return TOP + (HEIGHT - TOP - 40) * (1 - log10(seconds / low) / log10(high / low))

    parts = [_text(LEFT, 22, f"{TITLES[job]}, RTT {rtt_ms:g} ms: seconds by number of hosts")]
    parts += [_text(x(n) - 6, HEIGHT - 18, str(n)) for n in sizes]
    for seconds in (s for s in (0.1, 0.3, 1, 3, 10, 30, 100, 300) if low < s < high):
        parts.append(f'<path d="M{LEFT} {y(seconds):.0f}H{WIDTH - 110}" stroke="#ddd"/>')
        parts.append(_text(12, y(seconds) + 4, f"{seconds:g} s"))
    for tool, color in COLORS.items():
        own = [(x(n), y(s)) for n, name, s in marks if name == tool]
        if own:
            line = " ".join(f"{a:.0f},{b:.0f}" for a, b in own)
            parts.append(f'<polyline points="{line}" fill="none" stroke="{color}" '
                         'stroke-width="2"/>')  # fmt: skip
            parts += [f'<circle cx="{a:.0f}" cy="{b:.0f}" r="3" fill="{color}"/>' for a, b in own]
            parts.append(_text(own[-1][0] + 8, own[-1][1] + 4, tool, color))
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="sans-serif" font-size="12">\n<rect width="100%" height="100%" '
        f'fill="white"/>\n{body}\n</svg>\n'
    )


def _text(x: float, y: float, words: str, color: str = "#222") -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" fill="{color}">{words}</text>'
