"""Judge a state: still waiting, ready, or over, with the cause named. Pure.

It is over when a cause is certain, when something ended that nobody starts again, or when a stage
took longer than it may.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ..core.rules import Finding
from . import budgets
from .budgets import Past
from .failures import CONSEQUENCE, Catalogue, Match, diagnose, unexplained
from .shown import LOOP, card_signs, state_signs, worker_signs
from .stages import WAITS, Stage
from .watch import State, Watched

STALE_S = 12.0
"""How long a state must hold before it is judged: keys of a killed worker outlive it by 10 s."""


TOLD_S = 4.0
"""How long one that a log tells must hold: what is in front may be about to mend it."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What a judgement goes by. `past` are earlier starts alike, by worker."""

    known: Catalogue
    past: Mapping[str, list[Past]] = field(default_factory=dict)
    seconds: Mapping[Stage, float] = field(default_factory=lambda: budgets.SECONDS)
    least_s: float = STALE_S
    told_s: float = TOLD_S


@dataclass(frozen=True, slots=True)
class Waiting:
    """It goes on. `left_s` is the likely rest, None where no earlier start tells."""

    stage: Stage
    left_s: float | None = None


@dataclass(frozen=True, slots=True)
class Ready:
    """It serves, proven by one request."""

    proof: str


@dataclass(frozen=True, slots=True)
class Over:
    """It will not come up by waiting. `who` is a worker's key, "" for the deployment as a whole."""

    stage: Stage
    why: str
    who: str = ""
    matches: tuple[Match, ...] = ()
    said: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()  # of those who looked closer


Verdict = Waiting | Ready | Over


def judge(state: State, terms: Terms) -> Verdict:
    """Return the verdict on a state."""
    if state.stage is Stage.READY:
        return Ready(state.proof or "one chat completion was answered")
    every = sorted(state.workers.values(), key=lambda watched: watched.worker.key)
    for watched in every:
        if over := _worker_over(state, watched, terms):
            return over
    if over := _deployment_over(state, terms):
        return over
    return Waiting(state.stage, left(state, terms))


def _worker_over(state: State, seen: Watched, terms: Terms) -> Over | None:
    if seen.lost_since is not None:
        away = state.now - seen.lost_since
        return Over(seen.stage, seen.lost, seen.worker.key) if away > budgets.LOST_S else None
    ended = _ended(seen)
    if (ended or seen.stage < Stage.LISTED) and seen.sure:
        return _over(seen, terms, ended or f"it {WAITS[seen.stage]} in vain")
    if ended and not _may_return(state, seen, terms):
        return _over(seen, terms, ended)
    late = _late(state, seen, terms)
    return _with_ranks(state, seen, _over(seen, terms, late), terms) if late else None


def _may_return(state: State, seen: Watched, terms: Terms) -> bool:
    """Whether what is in front has ended just now: it loads nothing, and may be started anew."""
    over = seen.run is not None and seen.run.status in ("exited", "dead", "gone")
    return over and seen.worker.is_front and state.now - seen.since < terms.least_s


def _with_ranks(state: State, seen: Watched, over: Over, terms: Terms) -> Over:
    """Return the verdict on a worker that is late, by the log of the rank that knows why.

    Rank 0 of several waits for the others; the one that hangs or fails has the line.
    """
    others = () if over.matches else state.ranks(seen.worker)
    told = (_over(rank, terms, over.why) for rank in others)
    found = next((one for one in told if one.matches), None)
    return over if found is None else replace(over, matches=found.matches, said=())


def _ended(seen: Watched) -> str:
    """Return how a worker ended, where nobody starts it again; "" while it may still come up."""
    run = seen.run
    if run is None or run.is_up:
        return "it was restarted again and again" if seen.restarts >= LOOP else ""
    if run.status == "restarting":
        return "it was restarted again and again" if max(seen.restarts, run.count) >= LOOP else ""
    if run.status in ("exited", "dead") and not seen.worker.restarts:
        code = "" if run.exit is None else f" with exit code {run.exit}"
        return f"it ended{code}" + (f": {run.error}" if run.error else "")
    if run.status == "gone" and seen.was_up:
        return "it is gone" if not seen.worker.contained else "its container is gone"
    return ""


def _over(seen: Watched, terms: Terms, why: str) -> Over:
    case = replace(terms.known.case, signs=frozenset(worker_signs(seen)))
    found = diagnose(terms.known.rows, seen.lines, case)
    said = unexplained(found, seen.lines)
    return Over(seen.stage, why, seen.worker.key, found, said)


def _late(state: State, seen: Watched, terms: Terms) -> str:
    if seen.stage >= Stage.LISTED or seen.stage is Stage.REGISTERED:
        return _late_at(state, seen, terms) if seen.stage is Stage.REGISTERED else ""
    if seen.stage is not Stage.ENGINE:
        return _late_at(state, seen, terms)
    if seen.worker.follows:
        return ""  # it is up when rank 0 is, and late with it
    past = terms.past.get(seen.worker.key, [])
    may = budgets.budget(seen.worker.timeout_s, past)
    began = seen.since if seen.born is None else seen.born
    if state.now <= budgets.deadline(began, may, seen.moved):
        return ""
    quiet = "" if seen.moved is None else f", no progress for {state.now - seen.moved:.0f} s"
    return f"it has loaded for {state.now - began:.0f} s, it may take {may:.0f} s{quiet}"


def _late_at(state: State, seen: Watched, terms: Terms) -> str:
    may, took = terms.seconds[seen.stage], state.now - seen.since
    if took <= may:
        return ""
    what = f" ({seen.waits_for})" if seen.waits_for else ""
    return f"it {WAITS[seen.stage]} for {took:.0f} s{what}, it may take {may:.0f} s"


def _deployment_over(state: State, terms: Terms) -> Over | None:
    if state.stage < Stage.LISTED and not _is_settled(state):
        return None
    held = state.now - state.since
    signs = frozenset(state_signs(state))
    case = replace(terms.known.case, signs=signs)
    fresh = fresh_lines(state)
    found = diagnose(terms.known.rows, fresh, case)
    sure = [m for m in found if m.is_certain and m.failure.weight > CONSEQUENCE]
    if any(held >= (terms.told_s if m.failure.says else terms.least_s) for m in sure):
        return Over(state.stage, f"it {WAITS[state.stage]} in vain", "", found)
    may = terms.seconds.get(state.stage, 60.0)
    if state.stage >= Stage.LISTED and held > may:
        why = f"it {WAITS[state.stage]} for {held:.0f} s, it may take {may:.0f} s"
        return Over(state.stage, why, "", found, unexplained(found, fresh))
    return None


def _is_settled(state: State) -> bool:
    """Whether what is announced contradicts the deployment, so that no waiting mends it."""
    return bool({"cards.names-differ", "cards.namespaces-differ"} & set(card_signs(state)))


def fresh_lines(state: State) -> list[str]:
    """What rows may speak of: of workers since the request was sent, of what is in front, all."""
    lines: list[str] = []
    for key, watched in state.workers.items():
        since = 0 if watched.worker.is_front else state.chat_heard.get(key)
        if since is not None:
            lines += [line for number, line in watched.suspects if number > since]
    return lines


def left(state: State, terms: Terms) -> float | None:
    """Return the likely rest of the wait: the longest of the workers that still load."""
    rests = [_left(state, watched, terms) for watched in state.workers.values()]
    known = [rest for rest in rests if rest is not None]
    return max(known, default=None)


def _left(state: State, seen: Watched, terms: Terms) -> float | None:
    past = terms.past.get(seen.worker.key, [])
    if not past or seen.stage >= Stage.LISTED or seen.born is None:
        return None
    phase = 0.0 if seen.phase_since is None else state.now - seen.phase_since
    return budgets.remaining(past, seen.progress, state.now - seen.born, phase)
