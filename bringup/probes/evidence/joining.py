"""Join the pieces that many commands told into one reading a type of fact."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from ...core.facts import Facts
from ...core.reading import Absent, Known, Reading, Unknown
from .. import gpu
from ..access import Access
from ..cdi import CdiSpecs
from ..containers import Containers
from ..driver import Driver
from ..engine_log import EngineLogs
from ..fabric import FabricManager
from ..gpu import Gpus
from ..hca import GpuSlot, Sighting, shown
from ..hca_purpose import classified
from ..infiniband import InfiniBand
from ..kernel import Modules
from ..model import ModelFolder
from ..network import Listeners
from ..parts import NOT_ASKED, gathered
from ..pci import PciGpus
from ..rdma import RdmaNodes
from ..readers import infiniband, smi
from ..services import Etcd
from ..storage import Disks, Mounts
from ..toolkit import Nvcc
from .driver import Described
from .gpus import Levels
from .nodes_in_dev import NodeModes, closed_to
from .piece import Piece
from .rdma import Managed, Netdevs
from .wholeness import AllDevices

T = TypeVar("T")
Readings = Sequence[Reading[Any]]  # Any: all of one type, which the key names
Pieces = Mapping[type, Readings]

PARTS = (smi.Listing, Sighting, Levels, Managed, Described, Netdevs, NodeModes, AllDevices)
"""Types that are no facts themselves."""


def facts_from(pieces: Iterable[Piece]) -> Facts:
    """Return facts, one reading a type; what no command told stays "not asked"."""
    found: dict[type, list[Reading[Any]]] = {}
    for piece in pieces:
        found.setdefault(piece.fact, []).append(piece.reading)
    facts = {fact: _joined(fact, readings) for fact, readings in found.items() if fact not in PARTS}
    return _with_closed(Facts({**facts, **_gpus(found), **_infiniband(found)}), found)


def _with_closed(facts: Facts, pieces: Pieces) -> Facts:
    """Add which device files this login may not open, where modes and login were both told."""
    modes = {
        path: mode for each in values(pieces.get(NodeModes, ())) for path, mode in each.items()
    }
    shut = closed_to(modes, facts[Access])
    gpus = tuple(file for file in shut if re.match(r"/dev/nvidia(?:\d+|ctl|-uvm) ", file))
    rdma = tuple(file for file in shut if file.startswith("/dev/infiniband/"))
    driver, nodes = facts[Driver], facts[RdmaNodes]
    if gpus and isinstance(driver, Known):
        facts = facts.replace(Driver, replace(driver, value=replace(driver.value, closed=gpus)))
    if rdma and isinstance(nodes, Known):
        facts = facts.replace(RdmaNodes, replace(nodes, value=replace(nodes.value, closed=rdma)))
    return facts


def _joined(fact: type, readings: Readings) -> Reading[Any]:
    return _JOINS.get(fact, gathered)(readings)


def values(readings: Readings) -> list[Any]:
    return [reading.value for reading in readings if isinstance(reading, Known)]


def _gpus(pieces: Pieces) -> dict[type, Reading[Any]]:
    listings = values(pieces.get(smi.Listing, ()))
    others = pieces.get(Gpus, ())
    if not listings:
        return {Gpus: gathered(others)} if others else {}
    reading = gpu.join(sorted(listings, key=_rank))
    if isinstance(reading, Unknown) and others:
        return {Gpus: gathered([*others, reading])}
    return {Gpus: reading}


def _rank(listing: smi.Listing) -> int:
    """Whole lists first: they settle which GPU has which index."""
    return 0 if listing.whole else 1


def _infiniband(pieces: Pieces) -> dict[type, Reading[Any]]:
    """Classify what all sources saw together; a listing that finds none is surely absent."""
    sources = values(pieces.get(Sighting, ()))
    levels = next(iter(values(pieces.get(Levels, ()))), Levels())
    others = tuple(Sighting(name) for name in levels)
    seen = infiniband.merged(*sources, *([others] if others else []))
    if not seen:
        absent = pieces.get(InfiniBand, ())
        return {InfiniBand: gathered(absent)} if absent else {}
    managed = [name for names in values(pieces.get(Managed, ())) for name in names]
    if pieces.get(Managed):
        signs = tuple(Sighting(d.name, switch_management=d.name in managed) for d in seen)
        seen = infiniband.merged(seen, signs)
    seen = _with_netdevs(seen, values(pieces.get(Netdevs, ())))
    described = {k: v for each in values(pieces.get(Described, ())) for k, v in each.items()}
    ib = classified(infiniband.with_models(seen, described), _slots(pieces), levels or None)
    ib = replace(ib, whole=bool(pieces.get(AllDevices)))
    return {InfiniBand: Known(ib, shown(ib.devices))}


def _with_netdevs(seen: Iterable[Sighting], told: Iterable[Netdevs]) -> tuple[Sighting, ...]:
    """Fill MTU and rate of devices from what was told of their network devices."""
    known: dict[str, tuple[int | None, float | None]] = {}
    for each in told:
        for name, (mtu, rate) in each.items():
            old = known.get(name, (None, None))
            known[name] = (mtu or old[0], rate or old[1])
    blank = (None, None)
    return tuple(
        replace(d, mtu=d.mtu or known.get(d.netdev, blank)[0],
                rate_gb_s=d.rate_gb_s or known.get(d.netdev, blank)[1])
        for d in seen
    )  # fmt: skip


def _slots(pieces: Pieces) -> tuple[GpuSlot, ...]:
    buses = values(pieces.get(PciGpus, ()))
    gpus = next((bus.gpus for bus in buses if bus.gpus), ())
    return tuple(GpuSlot(each.bus_id) for each in gpus)


def _nvcc(readings: Readings) -> Reading[Any]:
    """A folder that may hold a compiler outweighs a PATH that does not; a version settles it."""
    whole = gathered(readings)
    if isinstance(whole, Known):
        if first := _first(values(readings)):
            return replace(whole, value=replace(first, others=_others(readings)))
        return Unknown("an nvcc is there and its version was not told", whole.evidence)
    looked = next((r for r in readings if isinstance(r, Absent) and "/bin" in r.evidence), None)
    doubts = [reading for reading in readings if isinstance(reading, Unknown)]
    return looked or (doubts[0] if doubts else whole)


def _first(told: Sequence[Nvcc]) -> Nvcc | None:
    """Return the compiler whose version was told first; a look into PATH may tell its place."""
    found = next((nvcc for nvcc in told if nvcc.version), None)
    if found is None or found.path:
        return found
    return replace(found, path=next((nvcc.path for nvcc in told if not nvcc.version), ""))


def _others(readings: Readings) -> tuple[str, ...]:
    """Return further compilers that were asked by their path, as the probe names them."""
    told = [nvcc for nvcc in values(readings) if nvcc.version]
    return tuple(f"{nvcc.path} {nvcc.full}" for nvcc in told[1:] if nvcc.path and nvcc.full)


def _modules(readings: Readings) -> Reading[Any]:
    told: list[Modules] = values(readings)
    if not told:
        return gathered(readings)
    loaded = {name for each in told for name in (*each.loaded, *each.present)}
    missing = {name for each in told for name in each.missing} - loaded
    installed = {name: there for each in told for name, there in each.installed.items()}
    modules = Modules(
        tuple(sorted(loaded)), (), tuple(sorted(missing)), installed, any(m.whole for m in told)
    )
    return Known(modules, "; ".join(r.evidence for r in readings if isinstance(r, Known)))


def _fabric(readings: Readings) -> Reading[Any]:
    """A manager that one source does not find and none saw running is not there."""
    whole = gathered(readings)
    absent = next((reading for reading in readings if isinstance(reading, Absent)), None)
    if not isinstance(whole, Known) or absent is None:
        return whole
    manager: FabricManager = whole.value
    if manager.version == NOT_ASKED and not manager.package:
        return Known(replace(manager, version=absent), whole.evidence)
    return whole


def _united(field: str, key: Callable[[Any], object]) -> Callable[[Readings], Reading[Any]]:
    """Join facts that are one tuple: items of one key are joined, the first source wins."""

    def unite(readings: Readings) -> Reading[Any]:
        told = values(readings)
        if not told:
            return gathered(readings)
        items: dict[object, Any] = {}
        for each in told:
            for item in getattr(each, field):
                known = items.get(key(item))
                items[key(item)] = item if known is None else _filled(known, item)
        lines = [r.evidence for r in readings if isinstance(r, Known)]
        return Known(replace(told[0], **{field: tuple(items.values())}), "; ".join(lines))

    return unite


def _filled(one: T, other: T) -> T:
    joined = gathered([Known(one), Known(other)])
    return joined.value if isinstance(joined, Known) else one


def _model(readings: Readings) -> Reading[Any]:
    """The folder with most files is the model's; shards and sizes of an index belong to it."""
    told: list[ModelFolder] = values(readings)
    if not told:
        return gathered(readings)
    main = max(told, key=lambda folder: len(folder.files))
    rest = [folder for folder in told if folder is not main]
    shards = next((f.shards for f in (main, *rest) if f.shards), ())
    total = next((f.tensor_bytes for f in (main, *rest) if f.tensor_bytes is not None), None)
    folder = replace(main, shards=shards, tensor_bytes=total)
    return Known(folder, next(r.evidence for r in readings if isinstance(r, Known)))


_JOINS: Mapping[type, Callable[[Readings], Reading[Any]]] = {
    Nvcc: _nvcc,
    Modules: _modules,
    FabricManager: _fabric,
    ModelFolder: _model,
    Disks: _united("disks", lambda disk: disk.path),
    Mounts: _united("mounts", lambda mount: mount.path),
    Containers: _united("containers", lambda container: container.name),
    Listeners: _united("listeners", lambda one: (one.port, one.address)),
    Etcd: _united("members", lambda member: member.endpoint),
    EngineLogs: _united("logs", lambda log: log.source),
    CdiSpecs: _united("specs", lambda spec: spec.path),
}
