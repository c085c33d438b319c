"""Whether workers are announced in discovery: by their addresses, else by their roles alone."""

from __future__ import annotations

from collections.abc import Iterable

from ..core.host import Mode
from .cards import Announced, ModelCard
from .stages import Worker


def is_registered(worker: Worker, announced: Announced | None, cards: Iterable[ModelCard]) -> bool:
    """Whether one of these cards is a worker's; where no card tells an address, its role does."""
    if announced is None:
        return False
    places = _places(announced)
    mine = [card for card in cards if role_of(card) is worker.mode]
    hosts = {_host(places[card.instance]) for card in mine if card.instance in places}
    if hosts and worker.addresses:
        return bool(hosts & set(worker.addresses))
    return bool(mine)


def is_announced(worker: Worker, announced: Announced | None) -> bool:
    """Whether its host announces a worker of its kind, under whatever name; unknown counts so."""
    if announced is None:
        return True
    places = _places(announced)
    alike = [card for card in announced.cards if role_of(card) is worker.mode]
    own = set(worker.addresses)
    return any(
        not own or c.instance not in places or _host(places[c.instance]) in own for c in alike
    )


def role_of(card: ModelCard) -> Mode | None:
    """Return what a card's worker does; Dynamo's other words give None."""
    words = {"prefill": Mode.PREFILL, "decode": Mode.DECODE, "aggregated": Mode.AGGREGATED}
    if card.worker_type:
        return words.get(card.worker_type)
    return Mode.PREFILL if card.component == "prefill" else Mode.AGGREGATED


def _places(announced: Announced) -> dict[int, str]:
    """Return the address of every instance that workers reach over TCP."""
    return {one.instance: one.address for one in announced.instances if one.transport == "tcp"}


def _host(address: str) -> str:
    return address.rpartition(":")[0].strip("[]")
