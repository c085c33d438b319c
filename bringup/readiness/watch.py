"""Fold what is seen, look by look, into how far every worker and the deployment have come.

Pure: the state before and a look give the state after. Who judges it is `verdict`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ..core.host import Mode
from ..core.reading import Absent, Known, Reading, Unknown, why_not
from .cards import Announced, ModelCard
from .engine_log import Phase, Progress, progress
from .failures import Catalogue
from .log_lines import lines_of
from .registration import is_announced, is_registered
from .stages import Chat, Look, Peers, Run, Stage, Worker, WorkerLook

BEGUN = Progress()

SUSPECTS = 500
"""Lines that some row of the catalogue has a word about, kept for early judgement."""

UNANNOUNCED = "etcd has nothing of it"

KEPT = 4000
"""Lines of a log that are kept for a diagnosis: more than the tracebacks of eight ranks."""


@dataclass(frozen=True, slots=True)
class Watched:
    """How far one worker has come. Times are of the caller's clock.

    `born` is when its run began, by its age. `moved` is when its log last showed progress.
    """

    worker: Worker
    stage: Stage = Stage.ETCD
    since: float = 0.0
    run: Run | None = None
    was_up: bool = False
    progress: Progress = BEGUN
    born: float | None = None
    moved: float | None = None
    phase_since: float | None = None
    marks: Mapping[str, float] = field(default_factory=dict)  # phase to its second of the run
    came_up_s: float | None = None  # how long the run took to register or answer
    lines: tuple[str, ...] = ()
    heard: int = 0  # lines in all
    suspects: tuple[tuple[int, str], ...] = ()  # with their number in all
    sure: bool = False  # whether they name a root cause surely
    restarts: int = 0  # new runs seen while we waited
    lost: str = ""
    lost_since: float | None = None
    waits_for: str = ""


@dataclass(frozen=True, slots=True)
class State:
    """The whole deployment. `name` is the served model name; `pair`: both sides must show it."""

    name: str
    namespace: str
    workers: Mapping[str, Watched]
    began: float
    uses_etcd: bool = True
    uses_nats: bool = False
    pair: bool = False
    stage: Stage = Stage.ETCD
    since: float = 0.0
    announced: Announced | None = None
    listed: bool | None = None
    peers: Reading[Peers] | None = None
    chat: Chat | None = None
    chat_heard: Mapping[str, int] = field(default_factory=dict)  # lines heard before the chat
    proof: str = ""
    unpaired: str = ""
    unreachable: tuple[str, ...] = ()
    now: float = 0.0

    def leader(self, worker: Worker) -> Worker:
        """Return rank 0 of a worker: the worker itself, where it is that."""
        watched = self.workers.get(worker.follows)
        return watched.worker if watched else worker

    def ranks(self, worker: Worker) -> tuple[Watched, ...]:
        """Return the ranks above 0 of a worker, in the order of their names."""
        every = sorted(self.workers.items())
        return tuple(watched for _, watched in every if watched.worker.follows == worker.key)

    @property
    def is_started(self) -> bool:
        """Whether anything runs, ran, or could not be looked at."""
        runs = [(watched.run, watched.was_up) for watched in self.workers.values()]
        return any(was_up or run is None or run.status != "gone" for run, was_up in runs)

    @property
    def cards(self) -> tuple[ModelCard, ...]:
        """What is announced under this deployment's name, in any namespace."""
        cards = self.announced.cards if self.announced else ()
        return tuple(card for card in cards if self.name in (card.name, *card.aliases))


def begin(
    workers: tuple[Worker, ...],
    *,
    name: str,
    namespace: str,
    now: float,
    uses_etcd: bool,
    uses_nats: bool,
) -> State:
    """Return the state before the first look."""
    modes = {w.mode for w in workers if not w.is_front and not w.is_service}
    return State(
        name=name,
        namespace=namespace,
        workers={worker.key: Watched(worker, since=now) for worker in workers},
        began=now,
        since=now,
        now=now,
        uses_etcd=uses_etcd,
        uses_nats=uses_nats,
        pair={Mode.PREFILL, Mode.DECODE} <= modes,
    )


def advance(state: State, look: Look, known_failures: Catalogue) -> State:
    """Return the state after one more look."""
    announced = look.announced.value if isinstance(look.announced, Known) else state.announced
    known = replace(state, announced=announced, now=look.at, unreachable=look.unreachable)
    workers = {
        key: _worker(known, watched, look, known_failures) for key, watched in state.workers.items()
    }
    return _deployment(replace(known, workers=workers), look)


def _worker(state: State, before: Watched, whole: Look, rows: Catalogue) -> Watched:
    now, look = state.now, whole.workers.get(before.worker.key, WorkerLook())
    if look.lost:
        return replace(
            before, lost=look.lost,
            lost_since=now if before.lost_since is None else before.lost_since,
        )  # fmt: skip
    seen = _heard(_ran(before, look.run, now), look.lines, now, rows)
    stage, waits_for = _stage(state, seen, whole)
    took = seen.came_up_s
    came = before.run is not None and before.stage < Stage.LISTED <= stage
    if came and seen.born is not None:  # what was up at the first look came up unseen
        took = now - seen.born
    return replace(
        seen,
        stage=stage,
        since=seen.since if stage is seen.stage else now,
        waits_for=waits_for,
        came_up_s=took,
        lost="",
        lost_since=None,
    )


def _ran(before: Watched, reading: Reading[Run], now: float) -> Watched:
    """Take in how it runs. A run that began anew has its progress before it."""
    if not isinstance(reading, Known):
        return before
    run, last = reading.value, before.run
    anew = last is not None and run.is_up and run.started != last.started
    born = before.born if run.age_s is None else now - run.age_s
    after = replace(before, run=run, born=born, was_up=before.was_up or run.is_up)
    if not anew:
        return after
    return replace(
        after, progress=Progress(), moved=None, phase_since=None, marks={}, came_up_s=None,
        restarts=before.restarts + 1,
    )  # fmt: skip


def _heard(before: Watched, lines: tuple[str, ...], now: float, rows: Catalogue) -> Watched:
    """Take in what the log has gained."""
    if not lines:
        return before
    cut = [part for line in lines for part in lines_of(line)]
    after = progress(cut, before.progress)
    kept = (*before.lines, *cut)[-KEPT:]
    seen = _suspected(before, cut, rows)
    seen = replace(seen, lines=kept, heard=before.heard + len(cut), progress=after)
    if after.passed == before.progress.passed:
        return seen
    entered = after.phase is not before.progress.phase or before.phase_since is None
    age = 0.0 if seen.born is None else now - seen.born
    return replace(
        seen,
        moved=now,
        phase_since=now if entered else before.phase_since,
        marks={**before.marks, after.phase.name: age} if entered else before.marks,
    )


def _suspected(before: Watched, lines: list[str], rows: Catalogue) -> Watched:
    """Keep what rows have a word about; judge anew only where there is more of it."""
    numbered = enumerate(lines, before.heard + 1)
    fresh = [(number, line) for number, line in numbered if rows.is_suspect(line)]
    if not fresh:
        return before
    kept = (*before.suspects, *fresh)[-SUSPECTS:]
    return replace(before, suspects=kept, sure=rows.is_sure(line for _, line in kept))


def _stage(state: State, seen: Watched, whole: Look) -> tuple[Stage, str]:
    """Return the stage that a worker has not passed yet, and what it waits for there."""
    look = whole.workers.get(seen.worker.key, WorkerLook())
    if seen.worker.is_service:
        is_up = seen.run is not None and seen.run.is_up
        return (Stage.LISTED, "") if is_up else (Stage.CONTAINER, "")
    for needed, reading, stage in (
        (state.uses_etcd, look.etcd, Stage.ETCD),
        (state.uses_nats, look.nats, Stage.NATS),
    ):  # unknown does not hold it up: what a worker announces later tells more
        if needed and isinstance(reading, Known) and not reading.value:
            return stage, reading.evidence
    if seen.run is None or not seen.run.is_up:
        never = seen.run is not None and seen.run.status == "gone" and not seen.was_up
        text = "never started" if never else "" if seen.run is None else seen.run.status
        return Stage.CONTAINER, text
    return _loading(state, seen, whole)


def _loading(state: State, seen: Watched, whole: Look) -> tuple[Stage, str]:
    """Return how far an engine that runs is: rank 0 speaks for all ranks of its worker."""
    leader = state.leader(seen.worker)
    if not leader.registers:
        up = whole.workers.get(leader.key, WorkerLook()).up
        return (Stage.LISTED, "") if _good(up) else (Stage.ENGINE, why_not(up))
    if is_registered(leader, state.announced, state.cards):
        return Stage.LISTED, ""
    if seen.worker.follows or seen.progress.phase is not Phase.SERVING:
        return Stage.ENGINE, ""
    return Stage.REGISTERED, "" if is_announced(leader, state.announced) else UNANNOUNCED


def _good(reading: Reading[bool]) -> bool:
    return isinstance(reading, Known) and reading.value


def _deployment(state: State, look: Look) -> State:
    # a frontend that does not answer tells neither that it lists the model nor that it does not
    listed = state.name in look.listed.value if isinstance(look.listed, Known) else None
    peers = state.peers if isinstance(look.peers, Unknown) else look.peers
    chat = look.chat or (state.chat if listed else None)
    known = replace(state, listed=listed, peers=peers, chat=chat)
    if look.chat is None and state.chat is None and listed and not state.listed:
        known = replace(known, chat_heard={k: w.heard for k, w in state.workers.items()})
    known = _proven(known, look)
    stage = _reached(known)
    return replace(known, stage=stage, since=state.since if stage is state.stage else look.at)


def _proven(state: State, look: Look) -> State:
    match look.proof:
        case Known(text):
            return replace(state, proof=text, unpaired="")
        case Absent(evidence):
            return replace(state, unpaired=evidence)
    return state


def _reached(state: State) -> Stage:
    """Return the stage that the deployment has not passed yet."""
    slowest = min((w.stage for w in state.workers.values()), default=Stage.LISTED)
    chat = state.chat
    if not state.listed:
        return min(slowest, Stage.LISTED)
    if slowest < Stage.LISTED and not (chat and chat.is_good):
        return slowest
    if chat is None or not chat.is_good:
        return Stage.ANSWERS
    if state.pair and not state.proof:
        return Stage.PAIRED
    return Stage.READY if slowest >= Stage.LISTED else slowest
