"""FAB-06 to FAB-08: do the GPUs of one host reach each other, and how fast?"""

from __future__ import annotations

from collections.abc import Callable

from ..core.reading import Absent, Known, Unknown
from ..core.rules import Level, Row, Seen, World, failed, passed, skipped, warned
from ..probes.bandwidth import Bandwidth
from ..probes.figures import Reduced
from ..probes.topology import Topology
from .judging import SOFT, gpu_count, loss, not_told, unread

SHORT_OF = 0.9
"""Of a link's rate: some firmware tells 50 GB/s for the 53.125 of a B200 (nvbandwidth#44)."""

FLOOR_GB_S = 150  # NVSentinel's floor; the target of a kind comes from a good node


def _links(world: World) -> Seen:
    if why := _no_links(world):
        return skipped(why)
    reading = world.facts[Topology]
    if not isinstance(reading, Known):
        return unread(reading)
    links = reading.value.nvlinks
    if links is None:
        return not_told("the state of NVLinks")
    dead = [index for index, speeds in links.items() if not any(speeds)]
    partly = [index for index, speeds in links.items() if None in speeds and index not in dead]
    if dead and len(links) > 1:
        return failed(*(f"GPU {index}: no NVLink is active" for index in dead),
                      level=loss(world, dead))  # fmt: skip
    if partly:
        lines = (f"GPU {i}: {_inactive(links[i])} NVLinks are inactive" for i in partly)
        return failed(*lines, level=Level.WARN)
    want = world.kind.nvlinks if world.kind else None
    few = [index for index, speeds in links.items() if want and len(speeds) < want]
    if few:
        return failed(*(f"GPU {i}: {len(links[i])} of {want} NVLinks" for i in few),
                      level=Level.WARN)  # fmt: skip
    return _speed(world, {speed for speeds in links.values() for speed in speeds if speed})


def _inactive(speeds: tuple[float | None, ...]) -> str:
    return f"{speeds.count(None)} of {len(speeds)}"


def _speed(world: World, speeds: set[float]) -> Seen:
    want = world.kind.nvlink_gb_s if world.kind else None
    shown = ", ".join(f"{speed:g} GB/s" for speed in sorted(speeds))
    if want and speeds and min(speeds) < want * SHORT_OF:
        return warned(f"NVLinks run at {shown}, this board has {want:g} GB/s")
    return passed(f"all NVLinks are active at {shown}")


def _no_links(world: World) -> str:
    if world.kind is not None and not world.kind.nvlinks:
        return f"{world.kind.name}: no NVLink on these boards"
    return "one GPU" if gpu_count(world) == 1 else ""


def _matrix(world: World) -> Seen:
    if why := _no_links(world):
        return skipped(why)
    slow = _slow(world)
    reading = world.facts[Topology]
    if not isinstance(reading, Known):
        return slow or unread(reading)
    if slow:
        return slow
    links, peers = reading.value.links, reading.value.peers
    if links is None and peers is None:
        return not_told("the topology matrix")
    if world.kind is None and links is not None and not _has_nvlink(links):
        return skipped("no NVLink between any GPUs, and the kind of board is not known")
    bad = _lonely(links or (), lambda word: word.startswith(("NV", "C2C")))
    blocked = _lonely(peers or (), lambda word: word == "OK")
    if bad or blocked:
        lines = [f"GPU {i}: {w} to others, not NVLink" for i, w in bad.items()]
        lines += [f"GPU {i}: peer access {w}" for i, w in blocked.items()]
        everyone = len(bad) == len(links or ()) and bool(links)
        return failed(*lines[:4], level=Level.BLOCK if everyone and world.kind else Level.WARN)
    return passed(reading.evidence or "NVLink between all GPUs")


def _slow(world: World) -> Seen | None:
    """Return the failure of GPUs of one host that move less than any NVLink would."""
    reading = world.facts[Reduced]
    if not isinstance(reading, Known) or world.kind is None or not world.kind.nvlinks:
        return None
    found = reading.value
    if found.hosts > 1 or found.gpus < 2 or found.gb_s >= FLOOR_GB_S:
        return None
    line = f"{found.by}: {found.gb_s:.0f} GB/s over {found.gpus} GPUs of one host"
    return failed(line, f"NVLink gives more than {FLOOR_GB_S} GB/s", level=Level.WARN)


def _has_nvlink(links: tuple[tuple[str, ...], ...]) -> bool:
    return any(word.startswith("NV") for row in links for word in row)


def _lonely(rows: tuple[tuple[str, ...], ...], good: Callable[[str], bool]) -> dict[int, str]:
    """Return GPUs with a bad word towards more than half of the others, and that word."""
    found: dict[int, str] = {}
    for index, row in enumerate(rows):
        others = [word for place, word in enumerate(row) if place != index and word != "X"]
        bad = [word for word in others if not good(word)]
        if bad and len(bad) * 2 > len(others):
            found[index] = bad[0]
    return found


def _bandwidth(world: World) -> Seen:
    reading = world.facts[Bandwidth]
    if isinstance(reading, Absent):
        return skipped(reading.evidence)
    if isinstance(reading, Unknown):
        return unread(reading)
    found = reading.value
    line = f"all-reduce over {found.gpus} GPUs: {found.gb_s:.0f} GB/s ({found.by})"
    if world.kind is not None and not world.kind.nvlinks:
        return passed(f"{line}, over PCIe")
    return failed(line) if found.gb_s < FLOOR_GB_S else passed(line)


ROWS: tuple[Row[World], ...] = (
    Row(
        "FAB-06",
        "All NVLinks are active",
        _links,
        reason="an inactive link narrows every collective operation of its group",
        source="https://docs.nvidia.com/health-validation/reference/checks/",
        remedy="drain, reset all GPUs (nvidia-smi --gpu-reset) or reboot; if links stay inactive, "
        "call service",
        levels=SOFT,
    ),
    Row(
        "FAB-07",
        "GPUs reach each other over NVLink",
        _matrix,
        reason="links can be active while peer access is dead; then NCCL is slow or hangs",
        source="https://github.com/vllm-project/vllm/issues/16336",
        remedy="reboot; else serve without that GPU (NCCL_P2P_DISABLE=1 is the last resort)",
        levels=SOFT,
    ),
)

OPT_IN: tuple[Row[World], ...] = (
    Row(
        "FAB-08",
        "GPUs reach the bandwidth of a good node",
        _bandwidth,
        reason="an all-reduce over all GPUs shows what no counter does; below 150 GB/s something "
        "is wrong, the target comes from a good node of the same kind",
        source="https://github.com/NVIDIA/NVSentinel",
        remedy="look at FAB-06 and FAB-07, then compare with a good node of the same kind",
        levels=SOFT,
    ),
)
