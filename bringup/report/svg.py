"""Plots as SVG text, drawn by hand so that a page needs nothing else."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 920, 300
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 16, 40

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis: its range in values, and whether equal steps are equal factors."""

    low: float
    high: float
    label: str
    is_log: bool = False
    is_whole: bool = False  # values are counts

    def share(self, value: float) -> float:
        """Return where a value lies, 0 to 1; values outside are put on the edge."""
        low, high, at = self.low, self.high, min(max(value, self.low), self.high)
        if self.is_log:
            low, high, at = math.log10(low), math.log10(high), math.log10(at)
        return 0.0 if high == low else (at - low) / (high - low)

    def ticks(self) -> list[float]:
        """Return round values to mark."""
        if self.is_log:
            first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
            return [10.0**n for n in range(first, last + 1) if self.low <= 10.0**n <= self.high]
        span = self.high - self.low
        step = 10.0 ** math.floor(math.log10(span / 4)) if span > 0 else 1.0
        step *= next((factor for factor in (1, 2, 5, 10) if span / (step * factor) <= 6), 10)
        step = max(1.0, round(step)) if self.is_whole else step
        start = float(math.ceil(self.low)) if self.is_whole else self.low
        return [start + step * n for n in range(math.floor((self.high - start) / step) + 1)]


@dataclass(frozen=True, slots=True)
class Plot:
    """A frame with two axes; `draw` puts marks into it."""

    x: Axis
    y: Axis
    title: str

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Return the place of a pair of values, in the SVG's units."""
        right = LEFT + self.x.share(x) * (WIDTH - LEFT - RIGHT)
        return right, HEIGHT - BOTTOM - self.y.share(y) * (HEIGHT - TOP - BOTTOM)

    def draw(self, marks: Iterable[str]) -> str:
        """Return the whole SVG element."""
        head = (
            f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
            f'aria-label="{escape(self.title, quote=True)}">'
        )
        return "\n".join((head, *self._frame(), *marks, "</svg>"))

    def _frame(self) -> Iterable[str]:
        base = HEIGHT - BOTTOM
        yield f'<rect class="frame" x="{LEFT}" y="{TOP}" width="{WIDTH - LEFT - RIGHT}" ' + (
            f'height="{base - TOP}"/>'
        )
        for tick in self.x.ticks():
            at, _ = self.at(tick, self.y.low)
            yield f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="{TOP}" y2="{base}"/>'
            yield text(at, base + 16, number(tick), "middle")
        for tick in self.y.ticks():
            _, at = self.at(self.x.low, tick)
            level = f'y1="{at:.1f}" y2="{at:.1f}"'
            yield f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" {level}/>'
            yield text(LEFT - 8, at + 4, number(tick), "end")
        yield text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, self.x.label, "middle")
        middle = (TOP + base) / 2
        yield (
            f'<text class="label" transform="translate(14 {middle:.0f}) rotate(-90)" '
            f'text-anchor="middle">{escape(self.y.label)}</text>'
        )


def text(x: float, y: float, words: str, anchor: str = "start", kind: str = "label") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text class="{kind}" {place}>{escape(words)}</text>'


def number(value: float) -> str:
    """Return a tick's text: whole where it is, short where it is not."""
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:g}"


def line(plot: Plot, points: Points, kind: str) -> str:
    """Return a line through points."""
    places = " ".join("{:.1f},{:.1f}".format(*plot.at(x, y)) for x, y in points)
    return f'<polyline class="{kind}" points="{places}"/>' if points else ""


def stems(plot: Plot, points: Points, kind: str) -> str:
    """Return a stem up to each point: for the largest value of each column of time."""
    _, base = plot.at(plot.x.low, plot.y.low)
    path = " ".join(
        f"M{x:.1f} {base:.1f}V{y:.1f}" for x, y in (plot.at(at, value) for at, value in points)
    )
    return f'<path class="{kind}" d="{path}"/>' if points else ""


def band(plot: Plot, since: float, until: float, kind: str, *, low: float = 0.0) -> str:
    """Return a shaded time, from a share of the height up to the top."""
    left, bottom = plot.at(since, plot.y.low)
    right, top = plot.at(until, plot.y.high)
    foot = bottom - (bottom - top) * low
    wide = max(right - left, 1.0)
    return (
        f'<rect class="{kind}" x="{left:.1f}" y="{top:.1f}" width="{wide:.1f}" '
        f'height="{foot - top:.1f}"/>'
    )


def rule(plot: Plot, value: float, words: str) -> str:
    """Return a horizontal line at a value, with its name."""
    left, at = plot.at(plot.x.low, value)
    right, _ = plot.at(plot.x.high, value)
    return (
        f'<line class="rule" x1="{left:.1f}" x2="{right:.1f}" y1="{at:.1f}" y2="{at:.1f}"/>'
        + text(right - 4, at - 4, words, "end")
    )


def bars(plot: Plot, values: Sequence[float], kind: str) -> str:
    """Return a bar for each value, at 1, 2, 3…"""
    _, base = plot.at(plot.x.low, plot.y.low)
    wide = min(60.0, (WIDTH - LEFT - RIGHT) / max(1, len(values)) * 0.7)
    rects = []
    for place, value in enumerate(values, 1):
        x, y = plot.at(place, value)
        rects.append(
            f'<rect class="{kind}" x="{x - wide / 2:.1f}" y="{y:.1f}" width="{wide:.1f}" '
            f'height="{max(base - y, 0.5):.1f}"/>'
        )
    return "".join(rects)


def legend(names: Iterable[tuple[str, str]]) -> str:
    """Return names with their colours, as text beside a plot."""
    return " ".join(f'<span class="key {kind}">{escape(name)}</span>' for kind, name in names)
