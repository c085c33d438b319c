"""How far a deployment has come up: one live view, the verdict, and what to do when it is over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ..core.document import plain
from ..core.reading import Known
from ..readiness.doing import doing
from ..readiness.stages import WAITS, Chat, Stage
from ..readiness.verdict import Over, Ready, Verdict, Waiting
from ..readiness.watch import State, Watched
from ..readiness.worker_image import drift
from .diagnose import diagnosis_view, match_document, unknown_view
from .grid import pairs
from .probe import finding_view


def span(seconds: float) -> str:
    """Return a time as people say it: 42 s, 3 min 05 s, 1 h 02 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def state_view(state: State, verdict: Verdict) -> RenderableType:
    """Return every worker with its stage, progress and age, and the deployment's line."""
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2))
    for _ in range(5):
        table.add_column(no_wrap=False)
    for _, watched in sorted(state.workers.items()):
        table.add_row(*_row(state, watched))
    return Group(table, _line(state, verdict))


def _row(state: State, watched: Watched) -> tuple[RenderableType, ...]:
    worker, share = watched.worker, watched.progress.share
    colour = "green" if watched.stage >= Stage.LISTED else "red" if watched.lost else "yellow"
    age = "" if watched.born is None else span(state.now - watched.born)
    loads = watched.stage is Stage.ENGINE and share is not None
    bar = ProgressBar(total=1.0, completed=share or 0.0, width=20) if loads else Text("")
    return (
        Text(worker.host, "bold"),
        Text(worker.role),
        Text(doing(watched), colour),
        bar,
        Text(age, "dim"),
    )


def _line(state: State, verdict: Verdict) -> RenderableType:
    waited = span(state.now - state.began)
    line = Text(f"{state.name}  ", "bold").append(WAITS[state.stage], "cyan")
    line.append(f"  waited {waited}", "dim")
    if isinstance(verdict, Waiting) and verdict.left_s is not None:
        line.append(f", about {span(verdict.left_s)} to go (by earlier starts)", "dim")
    return line


def verdict_view(
    state: State, verdict: Verdict, seconds: float, words: Mapping[str, str]
) -> RenderableType:
    """Return how a wait ended: proof, or what, where, why and what to do."""
    match verdict:
        case Ready(proof):
            return Group(_ready(state, proof, seconds))
        case Over():
            return Group(*_over(state, verdict, seconds, words))
    return state_view(state, verdict)


def _ready(state: State, proof: str, seconds: float) -> RenderableType:
    grid = pairs(names=9, gap=1)
    grid.add_row(Text("ready", "bold green"), Text(f"{state.name} serves", "bold"))
    grid.add_row("after", Text(span(seconds)))
    if state.chat is not None:
        grid.add_row("answer", Text(_answer(state.chat)))
    grid.add_row("proof", Text(proof))
    for _, watched in sorted(state.workers.items()):
        for text in _drift(watched):
            grid.add_row(Text("but", "yellow"), Text(f"{watched.worker.key} {text}"))
    return Padding(grid, (0, 0, 0, 2))


def _answer(chat: Chat) -> str:
    first = "" if chat.first_s is None else f", the first after {chat.first_s:.2f} s"
    return f"{chat.tokens} tokens in {chat.seconds:.2f} s{first}"


def _drift(watched: Watched) -> tuple[str, ...]:
    return () if watched.run is None else drift(watched.worker, watched.run)


def _over(
    state: State, over: Over, seconds: float, words: Mapping[str, str]
) -> list[RenderableType]:
    grid = pairs(names=9, gap=1)
    who = over.who or state.name
    grid.add_row(Text("failed", "bold red"), Text(f"{who}: {over.why}", "bold"))
    grid.add_row("stage", Text(f"{over.stage.name.lower()}, after {span(seconds)}"))
    if state.chat is not None and state.chat.error:
        grid.add_row("answer", Text(state.chat.error))
    rows: list[RenderableType] = [Padding(grid, (0, 0, 0, 2))]
    rows += [finding_view(finding) for finding in over.findings]
    if over.matches:
        rows.append(diagnosis_view(over.matches, words))
    if over.said or not (over.matches or over.findings):
        rows.append(unknown_view(over.said))
    return [*rows, state_view(state, over)]


def ready_document(
    deployment: str, state: State, verdict: Verdict, seconds: float, words: Mapping[str, str]
) -> dict[str, Any]:
    """Return how a wait ended as plain data."""
    return {
        "schema": "bringup.ready/1",
        "deployment": deployment,
        "model": state.name,
        "verdict": type(verdict).__name__.lower(),
        "stage": state.stage.name.lower(),
        "seconds": round(seconds, 3),
        "left_s": verdict.left_s if isinstance(verdict, Waiting) else None,
        "proof": verdict.proof if isinstance(verdict, Ready) else None,
        "why": verdict.why if isinstance(verdict, Over) else None,
        "who": verdict.who if isinstance(verdict, Over) else None,
        "causes": [match_document(m, words) for m in verdict.matches]
        if isinstance(verdict, Over)
        else [],
        "findings": plain(verdict.findings) if isinstance(verdict, Over) else [],
        "said": list(verdict.said) if isinstance(verdict, Over) else [],
        "chat": plain(state.chat),
        "listed": state.listed,
        "missing": list(state.peers.value.missing) if isinstance(state.peers, Known) else [],
        "workers": [_worker_document(state, w) for _, w in sorted(state.workers.items())],
    }


def _worker_document(state: State, watched: Watched) -> dict[str, Any]:
    worker, run = watched.worker, watched.run
    return {
        "host": worker.host,
        "role": worker.role,
        "name": worker.name,
        "stage": watched.stage.name.lower(),
        "doing": doing(watched),
        "status": run.status if run else None,
        "exit": run.exit if run else None,
        "restarts": watched.restarts,
        "drifted": bool(_drift(watched)),
        "phase": watched.progress.phase.name.lower(),
        "done": watched.progress.done,
        "total": watched.progress.total,
        "age_s": None if watched.born is None else round(state.now - watched.born, 3),
        "came_up_s": watched.came_up_s,
    }
