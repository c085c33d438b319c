"""Wait until a deployment serves: look, judge, tell; prove it by one request."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..core.errors import Exit, ToolError, UsageError
from ..core.event import Event
from ..core.host import Deployment
from ..core.nearest import did_you_mean
from ..core.reading import Known
from ..core.remote import Remote
from ..core.script import compose, seconds_for, split
from ..edge.catalogue import failures
from ..edge.pool import each
from ..edge.starts import add_starts, read_starts
from ..readiness.budgets import SECONDS, Past, alike
from ..readiness.cards import Announced
from ..readiness.doing import doing
from ..readiness.failures import Case, catalogue
from ..readiness.proof import prove
from ..readiness.stages import WAITS, Look, Stage, Worker
from ..readiness.stream import request
from ..readiness.verdict import Over, Ready, Terms, Verdict, Waiting, judge
from ..readiness.watch import State, Watched, advance, begin
from .look import Looker
from .request import Request
from .targets import Target, as_written, head_ask, head_name, words_of
from .types import Tools
from .unlisted import explained

EVERY_S = 2.0
CHAT_S = 120.0
AGAIN_S = 5.0
"""Pause before another request after one that failed."""

Show = Callable[[State, Verdict], None]


@dataclass(frozen=True, slots=True)
class Waited:
    """How a wait ended."""

    target: Target
    state: State
    verdict: Verdict
    seconds: float

    @property
    def code(self) -> Exit:
        return Exit.DONE if isinstance(self.verdict, Ready) else Exit.FAILED

    @property
    def words(self) -> Mapping[str, str]:
        """What stands for HOST, ROLE and the like in a remedy: of the worker that it is about."""
        who = getattr(self.verdict, "who", "")
        return words_of(self.target, next((w for w in self.target.workers if w.key == who), None))


@dataclass(frozen=True, slots=True)
class Surveyed:
    """How a deployment stood when it was looked at, and who can look closer."""

    target: Target
    state: State
    looker: Looker
    terms: Terms


@dataclass(slots=True)
class Wait:
    """A wait for one deployment."""

    tools: Tools
    target: Target
    show: Show
    every_s: float = EVERY_S
    chat_s: float = CHAT_S
    once: bool = False
    seconds: Mapping[Stage, float] = field(default_factory=lambda: SECONDS)
    pending: Request | None = None

    def run(self) -> Waited:
        """Look and judge until it serves or is over."""
        began = time.monotonic()
        looker, terms, state = self._open(began)
        while True:
            state = advance(state, self._look(looker, state), terms.known)
            verdict = judge(state, terms)
            self.show(state, verdict)
            if not isinstance(verdict, Waiting) or self.once:
                break
            time.sleep(self.every_s)
        if isinstance(verdict, Over):
            verdict = explained(verdict, state, looker, terms.known)
        self._remember(state)
        return Waited(self.target, state, verdict, time.monotonic() - began)

    def survey(self) -> Surveyed:
        """Look twice, and on until one request has its answer where the model is listed.

        Nothing is judged by how long it stands: it is how things are now.
        """
        began = time.monotonic()
        looker, terms, state = self._open(began)
        for number in itertools.count(1):
            state = advance(state, self._look(looker, state), terms.known)
            self.show(state, Waiting(state.stage))
            spent = time.monotonic() - began
            is_open = state.listed and not state.chat and spent < self.chat_s + AGAIN_S
            if number > 1 and not is_open:
                break
            time.sleep(self.every_s)
        return Surveyed(self.target, state, looker, terms)

    def _open(self, began: float) -> tuple[Looker, Terms, State]:
        self.target = self._as_written()
        return (
            Looker(self.target, self._remote, self.tools.nonce),
            self._terms(),
            self._begin(began),
        )

    def _remote(self, name: str) -> Remote:
        return self.tools.fleet.remote(name)

    def _begin(self, now: float) -> State:
        deployment = self.target.deployment
        return begin(
            self.target.workers,
            name=deployment.model.served_name,
            namespace=deployment.services.namespace,
            now=now,
            uses_etcd=bool(deployment.services.etcd),
            uses_nats=bool(deployment.services.nats),
        )

    def _terms(self) -> Terms:
        history = read_starts(self._folder)
        past = {w.key: alike_to(history, w, self._model) for w in self.target.workers}
        return Terms(catalogue(failures(), case_of(self.target)), past, self.seconds)

    @property
    def _folder(self) -> Path:
        return self.tools.store.folder

    @property
    def _model(self) -> str:
        model = self.target.deployment.model
        return f"{model.path}@{model.revision}" if model.revision else model.path

    def _as_written(self) -> Target:
        """Return the target with what the scripts on the hosts say of themselves."""
        told: dict[str, Worker] = {}

        def ask(host: str) -> dict[str, Worker]:
            workers = self.target.on(host)
            questions = [head_ask(worker) for worker in workers]
            nonce = self.tools.nonce()
            script = compose(questions, nonce=nonce, root=self.target.inventory.hosts[host].root)
            result = self._remote(host).read(script, seconds=seconds_for(questions))
            answer = split(result.stdout, nonce=nonce)
            return {w.key: as_written(w, answer[head_name(w)]) for w in workers}

        for outcome in each([host.name for host in self.target.hosts], ask):
            if outcome.error is not None:
                if isinstance(outcome.error, ToolError):
                    raise outcome.error.at(host=outcome.item, step="ready")
                raise outcome.error
            told |= outcome.value or {}
        workers = tuple(told.get(worker.key, worker) for worker in self.target.workers)
        return replace(self.target, workers=workers)

    def _look(self, looker: Looker, state: State) -> Look:
        """Look at everything; take in an answer that has come, send the request when it is time."""
        look = looker.look()
        waiting, listed = (
            self.pending,
            isinstance(look.listed, Known) and (state.name in look.listed.value),
        )
        if waiting is None or waiting.answer is None:
            if waiting is None and listed:
                self.pending = self._request(looker).send()
            return look
        answer = waiting.answer
        if not answer.is_good:
            if listed and time.monotonic() - waiting.ended > AGAIN_S:
                self.pending = self._request(looker).send()
            return replace(look, chat=answer)
        known = replace(state, announced=_or(look, state))
        if not state.pair or state.proof:
            return replace(look, chat=answer)
        proof = prove(known, answer, waiting.before, looker.counters(asked=True))
        return replace(look, chat=answer, proof=proof)

    def _request(self, looker: Looker) -> Request:
        name = self.target.deployment.model.served_name
        named = self.target.deployment.engine.startswith("dynamo.")
        wish = request(name, "Say one short sentence.", 16, names_workers=named)
        return Request(looker, wish, self.chat_s)

    def _remember(self, state: State) -> None:
        """Keep how long each start took that was seen to come up."""
        came = [w for w in state.workers.values() if w.came_up_s is not None]
        try:
            add_starts(self._folder, [_past(watched, self._model) for watched in came])
        except (OSError, UsageError) as error:
            self.tools.listen(Event("", "ready", f"the time it took is not kept: {error}"))


def _or(look: Look, state: State) -> Announced | None:
    return look.announced.value if isinstance(look.announced, Known) else state.announced


def alike_to(history: tuple[Past, ...], worker: Worker, model: str) -> list[Past]:
    return alike(history, host=worker.host, role=worker.role, image=worker.image, model=model)


def _past(watched: Watched, model: str) -> Past:
    worker = watched.worker
    return Past(
        worker.host, worker.role, worker.image, model, watched.came_up_s or 0.0, watched.marks
    )


def case_of(target: Target) -> Case:
    """Return what is known of a target's deployment besides its logs."""
    return case_for(target.deployment)


def case_for(deployment: Deployment) -> Case:
    """Return what is known of a deployment besides its logs."""
    image = deployment.image
    package = "sglang" if "sglang" in deployment.engine else "vllm"
    versions = {package: image.engine_version, "ai-dynamo": image.dynamo_version}
    return Case(
        engine=deployment.engine,
        versions={name: text for name, text in versions.items() if text},
        given={"moe": str(deployment.model.mixture_of_experts).lower()},
    )


def budgets(words: tuple[str, ...]) -> dict[Stage, float]:
    """Return the budget of every stage, with STAGE=SECONDS words laid over."""
    return {**SECONDS, **dict(_budget(word) for word in words)}


def _budget(word: str) -> tuple[Stage, float]:
    name, _, seconds = word.partition("=")
    known = [stage.name.lower() for stage in SECONDS]
    if name not in known:
        raise UsageError(f"cannot give {name!r} a budget: no such stage{did_you_mean(name, known)}")
    if not re.fullmatch(r"\d+(\.\d+)?", seconds) or not float(seconds):
        raise UsageError(
            f"cannot read --budget {word!r}: its seconds should be a number above 0",
            remedy="write it as listed=300",
        )
    return Stage[name.upper()], float(seconds)


def told(listen: Callable[[Event], None]) -> Show:
    """Return what tells of a wait line by line: each change of a stage, a phase, or a tenth."""
    last: dict[str, object] = {}

    def show(state: State, verdict: Verdict) -> None:
        for key, watched in sorted(state.workers.items()):
            share = watched.progress.share
            tenth = None if share is None else int(share * 10)
            line = (watched.stage, watched.progress.phase, tenth, watched.lost, watched.waits_for)
            if last.get(key) != line:
                last[key] = line
                listen(event_of(watched))
        if last.get("") != (state.stage, type(verdict)):
            last[""] = (state.stage, type(verdict))
            is_end = not isinstance(verdict, Waiting)
            text = WAITS[state.stage]
            listen(Event(state.name, state.stage.name.lower(), text, is_end=is_end))

    return show


def event_of(watched: Watched) -> Event:
    """Return how far one worker is, as an event."""
    text = doing(watched)
    share = watched.progress.share if watched.stage is Stage.ENGINE else None
    stage, is_end = watched.stage.name.lower(), watched.stage >= Stage.LISTED
    return Event(watched.worker.key, stage, text, share, is_end=is_end)


__all__ = ["Over", "Wait", "Waited", "told"]
