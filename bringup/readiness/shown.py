"""What a state shows, as signs: of one worker, of what is announced, of the frontend. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ..core.host import Mode
from ..core.reading import Absent, Known
from .cards import ModelCard
from .engine_log import Phase
from .registration import role_of
from .stages import Run, Stage
from .watch import UNANNOUNCED, State, Watched

LOOP = 3
"""Restarts during one wait that make a loop (proposed)."""


def worker_signs(seen: Watched) -> Iterator[str]:
    """Yield what one worker shows: its container or process, and services it waits for."""
    if seen.run is not None:
        yield from signs_of(seen.run, seen.restarts)
    waits = {Stage.ETCD: "etcd.down", Stage.NATS: "nats.down"}
    if seen.stage in waits and seen.waits_for:
        yield waits[seen.stage]
    if seen.stage is Stage.REGISTERED and seen.waits_for == UNANNOUNCED:
        yield "worker.unregistered"


def signs_of(run: Run, restarts: int = 0) -> Iterator[str]:
    """Yield what a run shows; `restarts` counts those seen besides its own count."""
    if max(restarts, run.count) >= LOOP:
        yield "container.loop"
    if run.status == "gone":
        yield "container.gone"
    if run.is_up or run.status in ("gone", "starting"):
        return
    yield "container.exited"
    yield "container.oom" if run.oom else "container.not-oom"
    if run.exit is not None:
        yield f"container.exit={run.exit}"


def state_signs(state: State) -> Iterator[str]:
    """Yield what discovery and the frontend show of the whole deployment."""
    yield from card_signs(state)
    if state.uses_etcd:
        yield "worker.dynamo"
    if state.unreachable:
        yield "worker.unreachable"
    own = [w for w in state.workers.values() if not (w.worker.url or w.worker.follows)]
    if all(w.progress.phase is Phase.SERVING for w in own):
        yield "peers.up"
    yield from _frontend_signs(state)


def card_signs(state: State) -> Iterator[str]:
    """Yield what the announcements show."""
    if state.announced is None:
        return
    mine, wanted = state.cards, {w.worker.mode for w in state.workers.values() if _works(w)}
    there = {role_of(card) for card in mine}
    if not state.announced.cards:
        yield "cards.none"
    elif wanted <= there:
        yield "cards.complete"
    else:
        yield "cards.some"
    yield from _differences(state, mine, wanted)
    if any(instance.transport != "tcp" for instance in state.announced.instances):
        yield "transport.nats"


def _works(watched: Watched) -> bool:
    return not watched.worker.is_front and not watched.worker.is_service


def _differences(state: State, mine: tuple[ModelCard, ...], wanted: set[Mode]) -> Iterator[str]:
    """Compare the sides of a pair: by name over all that our own hosts announce, by namespace."""
    ours = [card for card in _ours(state) if role_of(card) in wanted]
    names = {role: {c.name for c in ours if role_of(c) is role} for role in wanted}
    if all(names.values()) and len(wanted) > 1 and not set.intersection(*names.values()):
        yield "cards.names-differ"
    if ours and not any(state.name in (card.name, *card.aliases) for card in ours):
        yield "cards.other-name"
    spaces = {role: {c.namespace for c in mine if role_of(c) is role} for role in wanted}
    if all(spaces.values()) and len(wanted) > 1 and not set.intersection(*spaces.values()):
        yield "cards.namespaces-differ"
    if mine and state.namespace not in {card.namespace for card in mine}:
        yield "cards.other-namespace"


def _ours(state: State) -> list[ModelCard]:
    """Cards of workers on this deployment's hosts, whatever name they go by."""
    if state.announced is None:
        return []
    hosts = {a for w in state.workers.values() for a in w.worker.addresses}
    places = {i.instance: i.address.rpartition(":")[0] for i in state.announced.instances}
    return [c for c in state.announced.cards if places.get(c.instance) in hosts]


def _frontend_signs(state: State) -> Iterator[str]:
    if state.listed is None:
        yield "frontend.down"
    else:
        yield "listed" if state.listed else "list.empty"
    if isinstance(state.peers, Absent):
        yield "ready.404"
    elif isinstance(state.peers, Known) and state.peers.value.missing:
        yield "ready.missing"
    chat = state.chat
    if chat is not None and not chat.is_good:
        empty = chat.status == 200 and not chat.error
        yield "chat.silent" if chat.silent else "chat.empty" if empty else "chat.error"
    if state.unpaired:
        yield "paired.no"
