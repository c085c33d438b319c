"""A kind of host written from one good host: what others of its kind are then expected to have."""

from __future__ import annotations

import json
from collections import Counter

from ..core.errors import UsageError
from ..core.facts import Facts
from ..core.reading import Known, evidence_of
from .fabric import FabricManager
from .gpu import Gpu, Gpus
from .hca import InfiniBand
from .kernel import Modules
from .topology import Topology


def kind_text(facts: Facts, *, name: str, host: str) -> str:
    """Return the YAML of ``inventory/kinds/NAME.yml`` for hosts like this one.

    Only what was read is stated. Raises UsageError where the GPUs are not known, or differ among
    themselves: such a host is no example.
    """
    reading = facts[Gpus]
    if not isinstance(reading, Known) or not reading.value.gpus:
        raise UsageError(
            f"cannot learn a kind from {host}: its GPUs are not known ({evidence_of(reading)})",
            remedy=f"see why: bringup probe --host {host}",
        )
    gpus = reading.value
    first = gpus.gpus[0]
    odd = [gpu for gpu in gpus.gpus if (gpu.name, gpu.memory_mib) != (first.name, first.memory_mib)]
    if odd:
        raise UsageError(f"cannot learn a kind from {host}: GPU {odd[0].index} is another board")
    rows = [
        f"# Learned from {host}, which was taken for good: read it before you trust it.",
        f"product_names: [{json.dumps(first.name)}]",
        *_row("compute_capability", json.dumps(first.compute_capability), first.compute_capability),
        *_row("gpu_count", gpus.count, gpus.count),
        *_row("memory_mib", first.memory_mib, first.memory_mib),
        *_row("power_w", int(first.power_limit_w or 0), first.power_limit_w),
        *_links(facts),
        *_fabric(facts, first),
        *_rate(facts, gpus),
        *_row("driver_floor", json.dumps(gpus.driver), gpus.driver),
        f"source: {json.dumps(f'golden host, kind {name}')}",
    ]
    return "\n".join(rows) + "\n"


def _row(key: str, text: object, told: object) -> list[str]:
    return [f"{key}: {text}"] if told else []


def _links(facts: Facts) -> list[str]:
    """Return NVLinks of a GPU and the rate of one, where all GPUs have as many."""
    reading = facts[Topology]
    links = reading.value.nvlinks if isinstance(reading, Known) else None
    active = [[rate for rate in rates if rate] for rates in (links or {}).values()]
    if not active or len({len(rates) for rates in active}) != 1 or not active[0]:
        return []
    (rate, _), *_ = Counter(rate for rates in active for rate in rates).most_common(1)
    return [f"nvlinks: {len(active[0])}", f"nvlink_gb_s: {rate:g}"]


def _fabric(facts: Facts, gpu: Gpu) -> list[str]:
    """A fabric manager belongs here where one runs, or where a GPU has joined a fabric."""
    manager, modules = facts[FabricManager], facts[Modules]
    runs = isinstance(manager, Known) and manager.value.state == "active"
    if not runs and gpu.fabric_state != "Completed":
        return []
    rows = ["fabric_manager: true"]
    needs_umad = isinstance(modules, Known) and bool(modules.value.has("ib_umad"))
    if needs_umad and isinstance(manager, Known) and manager.value.nvlsm:
        rows.append("nvlsm: true")
    return [*rows, "form: hgx"]


def _rate(facts: Facts, gpus: Gpus) -> list[str]:
    """Return Gb/s for each GPU; nothing where a port is down, which would state too little."""
    reading = facts[InfiniBand]
    compute = reading.value.compute if isinstance(reading, Known) else ()
    rates = [device.rate_gb_s for device in compute if device.is_active]
    if not rates or len(rates) != len(compute) or not gpus.count:
        return []
    return [f"rate_gb_s_per_gpu: {sum(rate or 0.0 for rate in rates) / gpus.count:g}"]
