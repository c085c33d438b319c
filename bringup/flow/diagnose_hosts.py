"""Diagnose a deployment as it stands: its workers by state, log and checks of their hosts.

Then what discovery, the frontend and one request tell of the whole.
"""

from __future__ import annotations

from dataclasses import replace

from ..core.reading import value_of
from ..readiness.diagnosis import Diagnosis
from ..readiness.doing import doing
from ..readiness.failures import CONSEQUENCE, Match, diagnose, unexplained
from ..readiness.shown import state_signs, worker_signs
from ..readiness.stages import WAITS, Stage, Worker
from ..readiness.verdict import Over, fresh_lines
from ..readiness.watch import Watched
from .ready import Surveyed, Wait, case_of, told
from .serve import KnownDeployment, Wish, know
from .status import logs
from .targets import Target, chosen, words_of
from .types import Tools
from .unlisted import explained

LINES = 4000

ENTAILED = frozenset({"cards.none", "cards.some"})
"""What a worker that is down entails in discovery, once its lease has run out."""

ANSWER_S = 30.0
"""How long one chat completion may take, where the model is listed."""


def diagnose_hosts(tools: Tools, wish: Wish, target: Target) -> list[Diagnosis]:
    """Return what each chosen worker shows and says, and then what the whole shows."""
    known = know(tools, wish)
    wait = Wait(tools, target, told(tools.listen), every_s=1.0, chat_s=ANSWER_S)
    surveyed = wait.survey()
    workers = chosen(target.workers, hosts=wish.hosts, roles=wish.roles)
    found = [_worker(tools, known, surveyed, worker) for worker in workers]
    return found if wish.hosts or wish.roles else [*found, _whole(surveyed)]


def _worker(tools: Tools, known: KnownDeployment, surveyed: Surveyed, worker: Worker) -> Diagnosis:
    watched = surveyed.state.workers[worker.key]
    design = known.designs.get(worker.host)
    case = replace(
        case_of(surveyed.target),
        signs=frozenset(worker_signs(watched)),
        findings=design.findings if design else (),
    )
    lines = watched.lines or _kept(tools, surveyed.target, worker)
    matches = diagnose(surveyed.terms.known.rows, lines, case)
    is_well = watched.stage >= Stage.LISTED
    if is_well:  # what it said while it came up is past; what only may be wrong may still be
        matches = tuple(match for match in matches if not match.failure.certain)
    return Diagnosis(
        worker.key, matches, () if is_well else _said(watched, matches, lines), _stands(watched),
        is_well, _loads(watched) and not matches, words=words_of(surveyed.target, worker),
    )  # fmt: skip


def _kept(tools: Tools, target: Target, worker: Worker) -> tuple[str, ...]:
    """The log of a worker that is gone, where it was kept."""
    return value_of(logs(tools, target, [worker], LINES)[worker.key]) or ()


def _said(watched: Watched, matches: tuple[Match, ...], lines: tuple[str, ...]) -> tuple[str, ...]:
    """The last words of a worker that is not up; one that loads has not failed."""
    if watched.lost:
        return (watched.lost,)
    return lines[-1:] if _loads(watched) else unexplained(matches, lines)


def _loads(watched: Watched) -> bool:
    is_up = watched.run is not None and watched.run.is_up
    return is_up and watched.stage is Stage.ENGINE and not watched.lost


def _stands(watched: Watched) -> str:
    run = watched.run
    if run is None or run.is_up or watched.lost:
        return doing(watched)
    code = "" if run.exit is None else f", exit code {run.exit}"
    return f"{run.status}{code}"


def _whole(surveyed: Surveyed) -> Diagnosis:
    state, rows = surveyed.state, surveyed.terms.known.rows
    if state.stage is Stage.READY:
        proof = state.proof or "one chat completion was answered"
        return Diagnosis(state.name, (), (), f"serves: {proof}", is_well=True)
    signs = frozenset(state_signs(state))
    case = replace(case_of(surveyed.target), signs=signs)
    lines = fresh_lines(state)
    over = Over(state.stage, "", "", diagnose(rows, lines, case))
    if state.listed is False:
        over = explained(replace(over, stage=Stage.LISTED), state, surveyed.looker,
                         surveyed.terms.known)  # fmt: skip
    down = [key for key, watched in sorted(state.workers.items()) if watched.stage < Stage.LISTED]
    matches = tuple(m for m in over.matches if _speaks(m, is_whole=not down))
    error = state.chat.error if state.chat and not state.chat.is_good else ""
    return Diagnosis(
        state.name, matches, (error,) if error and not (matches or down) else (),
        f"waits for {', '.join(down)}" if down else WAITS[state.stage],
        findings=over.findings, words=words_of(surveyed.target, None),
    )  # fmt: skip


def _speaks(match: Match, *, is_whole: bool) -> bool:
    """Whether a match tells something of the whole.

    While a worker is down, requests fail, addresses do not answer and its role is missed, for that
    reason alone; what is announced amiss stands by itself.
    """
    if is_whole:
        return bool(match.failure.signs) or match.failure.weight > CONSEQUENCE
    signs = set(match.failure.signs) - ENTAILED
    return any(sign.startswith(("cards.", "frontend.")) for sign in signs)
