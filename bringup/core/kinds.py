"""Which kind of host is this: the inventory's word, else the product name, else the capability."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Protocol

from .host import Host, Kind
from .reading import Known, Reading, Unknown, value_of


class Board(Protocol):
    """What of a GPU tells its kind."""

    @property
    def name(self) -> str: ...

    @property
    def compute_capability(self) -> str: ...


def kind_for(kinds: Mapping[str, Kind], gpus: Iterable[Board], host: Host) -> Kind | None:
    """Return the kind of a host, or None where nothing tells it surely (see `find_kind`)."""
    return value_of(find_kind(kinds, gpus, host))


def find_kind(kinds: Mapping[str, Kind], gpus: Iterable[Board], host: Host) -> Reading[Kind]:
    """Return the kind with what it was told by, or why it is unknown.

    The longest product name wins, so that GB300 is no B300 and H200 NVL no H200. A capability
    decides only where a single kind has it.
    """
    if host.kind:
        named = kinds.get(host.kind)
        return Known(named, f"inventory: {host.kind}") if named else _no_kind(host.kind)
    boards = tuple(gpus)
    names = {board.name for board in boards if board.name}
    found = {kind.name: kind for name in names if (kind := _by_name(kinds, name))}
    if len(found) > 1:
        return Unknown(f"GPUs of several kinds: {', '.join(sorted(found))}")
    if found and all(_by_name(kinds, name) for name in names):
        return Known(next(iter(found.values())), f"product name {', '.join(sorted(names))}")
    return _by_capability(kinds, {board.compute_capability for board in boards} - {""}, names)


def _no_kind(name: str) -> Unknown:
    return Unknown(f"the inventory says kind {name}, of which there is no file in kinds/")


def _by_name(kinds: Mapping[str, Kind], name: str) -> Kind | None:
    matches = [
        (len(product), kind)
        for _, kind in sorted(kinds.items())
        for product in kind.product_names
        if re.match(rf"{re.escape(product)}(?![A-Za-z0-9])", name)
    ]
    return max(matches, key=lambda match: match[0])[1] if matches else None


def _by_capability(
    kinds: Mapping[str, Kind], capabilities: set[str], names: set[str]
) -> Reading[Kind]:
    shown = ", ".join(sorted(names)) or "no GPU was named"
    if len(capabilities) != 1:
        return Unknown(f"no kind has the product name: {shown}")
    capability = next(iter(capabilities))
    fitting = [k for _, k in sorted(kinds.items()) if k.compute_capability == capability]
    if len(fitting) != 1:
        few = ", ".join(kind.name for kind in fitting) or "none"
        return Unknown(f"no kind has the product name {shown}; of capability {capability}: {few}")
    return Known(fitting[0], f"compute capability {capability}")
