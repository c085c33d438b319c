"""The GPUs as NVML tells them: types, what each printed word means, and how forms are joined.

The layouts of `nvidia-smi` are read in `readers.smi`; thresholds are in `rules.checks_gpu`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..core.facts import Probe, looked
from ..core.reading import Absent, Known, Reading, Unknown
from ..core.script import Section
from .readers import smi


@dataclass(frozen=True, slots=True)
class Process:
    """A process on a GPU. `memory_mib` None: the driver does not tell."""

    pid: int
    name: str = ""
    memory_mib: int | None = None


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU as the driver reports it. None or "": no usable value.

    Why there is none stands by attribute name in `not_supported` (the driver says N/A: so by
    design) or in `unreadable` (what it printed instead, e.g. ``ERR!``). In neither: not told.
    """

    index: int
    name: str
    uuid: str = ""
    bus_id: str = ""  # full, e.g. 00000000:1B:00.0
    compute_capability: str = ""  # "10.3"; "" when not told
    memory_mib: int | None = None
    memory_used_mib: int | None = None
    persistence: bool | None = None
    mig: bool | None = None
    ecc_uncorrected: int | None = None
    remap_pending: bool | None = None
    remap_failed: bool | None = None
    recovery_action: str = ""  # "None", "GPU Reset", …
    power_limit_w: float | None = None
    temperature_c: int | None = None
    fabric_state: str = ""  # "Completed", "In Progress", "N/A", "" when not told
    fabric_status: str = ""
    mig_pending: bool | None = None
    ecc: bool | None = None
    ecc_uncorrected_aggregate: int | None = None
    ecc_corrected: int | None = None
    sram_threshold_exceeded: bool | None = None
    remapped_uncorrectable: int | None = None
    repair_pending: bool | None = None
    unrepairable_memory: bool | None = None
    margin_c: int | None = None  # degrees left, falling; slowdown starts at margin_slow_c
    margin_slow_c: int | None = None
    slowdowns: tuple[str, ...] | None = None  # active reasons, e.g. "hw_thermal_slowdown"
    pcie_width: int | None = None
    pcie_width_max: int | None = None
    pcie_gen: int | None = None
    pcie_gen_max: int | None = None
    compute_mode: str = ""
    vbios: str = ""
    fabric_health: Mapping[str, str] = field(default_factory=dict)
    virtualization: str = ""  # "None", "Pass-Through", …
    licence: str = ""  # of a vGPU: "Licensed", "Unlicensed (Restricted)", …
    processes: tuple[Process, ...] | None = None
    not_supported: frozenset[str] = frozenset()
    unreadable: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Gpus:
    """All GPUs that NVML sees, with the versions of driver and CUDA it told ("" when not told)."""

    driver: str
    cuda: str  # what the driver can run, not a toolkit
    gpus: tuple[Gpu, ...]
    attached: int | None = None  # how many there are; None: as many as are listed here
    whole: bool = True  # False: only some of them were listed
    trouble: str = ""  # what nvidia-smi complained of beside the GPUs that it listed

    @property
    def count(self) -> int | None:
        """How many GPUs NVML sees, or None where only some were listed."""
        return self.attached or (len(self.gpus) if self.whole else None)


NOT_SUPPORTED = frozenset(
    {"N/A", "[N/A]", "Not Supported", "[Not Supported]", "[Not Available]", "Not Available",
     "Requested functionality has been deprecated"}
)  # fmt: skip


def is_fault(word: str) -> bool:
    """Tell whether a word stands for a reading that failed: ``ERR!``, ``[GPU requires reset]``."""
    return word.startswith(("[", "ERR!")) or "Unknown Error" in word or "is lost" in word


def number(word: str) -> int | None:
    """Return the whole number that a word starts with ("183359 MiB", "16x"), or None."""
    found = re.match(r"(-?\d+)(?:\.\d+)?(?=[\sx%]|$)", word)
    return int(found[1]) if found else None


def decimal(word: str) -> float | None:
    found = re.match(r"-?\d+(?:\.\d+)?(?=\s|$)", word)
    return float(found[0]) if found else None


def flag(word: str) -> bool | None:
    """Return True for Enabled, Yes, On, 1, False for Disabled, No, Off, 0, else None."""
    return {
        "enabled": True, "yes": True, "on": True, "active": True,
        "1": True, "0": False, "disabled": False, "no": False, "off": False, "not active": False,
    }.get(word.lower())  # fmt: skip


def text(word: str) -> str | None:
    return word or None


_CONVERT: Mapping[str, Callable[[str], Any]] = {  # Any: each attribute has its own type
    "name": text,
    "uuid": text,
    "bus_id": lambda word: word.upper() if re.fullmatch(r"[0-9A-Fa-f:.]+", word) else None,
    "compute_capability": lambda word: word if re.fullmatch(r"\d+\.\d+", word) else None,
    **dict.fromkeys(
        ("memory_mib", "memory_used_mib", "ecc_uncorrected", "ecc_uncorrected_aggregate",
         "ecc_corrected", "temperature_c", "margin_c", "margin_slow_c", "remapped_uncorrectable",
         "pcie_width", "pcie_width_max", "pcie_gen", "pcie_gen_max"),
        number,
    ),
    **dict.fromkeys(
        ("persistence", "mig", "mig_pending", "ecc", "remap_pending", "remap_failed",
         "repair_pending", "unrepairable_memory", "sram_threshold_exceeded"),
        flag,
    ),
    "power_limit_w": decimal,
    **dict.fromkeys(
        ("recovery_action", "compute_mode", "vbios", "virtualization", "licence"),
        text,
    ),
}  # fmt: skip


def gpu_of(index: int, words: smi.Words) -> Gpu:
    """Return a GPU out of the words that were printed for it."""
    values: dict[str, Any] = {}  # Any: each attribute has its own type
    unsupported, unreadable = set[str](), dict[str, str]()
    for name, convert in _CONVERT.items():
        word = words.get(name)
        if word is None:
            continue
        if word in NOT_SUPPORTED:
            unsupported.add(name)
        elif is_fault(word) or (value := convert(word)) is None:
            unreadable[name] = word
        else:
            values[name] = value
    unreadable |= {
        k: w
        for k, w in words.items()
        if k.startswith("other.") and is_fault(w) and w not in NOT_SUPPORTED
    }
    return Gpu(
        index,
        values.pop("name", ""),
        **values,
        fabric_state=words.get("fabric_state", ""),
        fabric_status=words.get("fabric_status", ""),
        fabric_health=_under(words, "fabric_health."),
        slowdowns=_slowdowns(_under(words, "slowdown.")),
        processes=_processes(words),
        not_supported=frozenset(unsupported),
        unreadable=unreadable,
    )


def _slowdowns(reasons: Mapping[str, str]) -> tuple[str, ...] | None:
    told = {name: active for name, word in reasons.items() if (active := flag(word)) is not None}
    return tuple(sorted(name for name, active in told.items() if active)) if told else None


def _under(words: smi.Words, prefix: str) -> dict[str, str]:
    return {key[len(prefix) :]: word for key, word in words.items() if key.startswith(prefix)}


def _processes(words: smi.Words) -> tuple[Process, ...] | None:
    """Processes as "pid|name|memory" words; None when this form does not list them."""
    rows = words.get("processes")
    if rows is None:
        return None
    cells = (row.split("|") for row in rows.split("\n") if row.count("|") == 2)
    return tuple(Process(int(p), n, number(m)) for p, n, m in cells if p.isdecimal())


def join(listings: Iterable[smi.Listing]) -> Reading[Gpus]:
    """Return one reading out of what several forms told; the first that tells a word wins."""
    told = tuple(listings)
    good = [listing for listing in told if listing.gpus or listing.empty]
    trouble = next((listing.trouble for listing in told if listing.trouble), "")
    if not good:
        return Unknown(trouble or "nvidia-smi said nothing that can be read", trouble)
    rows = _rows(good)
    attached = next((listing.attached for listing in good if listing.attached is not None), None)
    gpus = Gpus(
        next((listing.driver for listing in told if listing.driver), ""),
        next((listing.cuda for listing in told if listing.cuda), ""),
        tuple(gpu_of(index, words) for index, words in sorted(rows.items())),
        attached=attached,
        whole=any(listing.whole or listing.empty for listing in good)
        and attached in (None, len(rows)),
        trouble="" if any(listing.empty for listing in good) else trouble,
    )
    return Known(gpus, next(listing.evidence for listing in good))


def _rows(listings: Iterable[smi.Listing]) -> dict[int, smi.Words]:
    """Join rows by index, or by bus address where a form gives no index."""
    rows: dict[int, dict[str, str]] = {}
    for listing in listings:
        by_bus = {words["bus_id"].upper(): i for i, words in rows.items() if "bus_id" in words}
        for place, words in enumerate(listing.gpus):
            index = _index(words, by_bus, place, listing)
            if index is not None:
                rows[index] = {**words, **rows.get(index, {})}
    return dict(rows)


def _index(
    words: smi.Words, by_bus: Mapping[str, int], place: int, listing: smi.Listing
) -> int | None:
    if words.get("index", "").isdecimal():
        return int(words["index"])
    known = by_bus.get(words.get("bus_id", "").upper())
    return known if known is not None else place if listing.ordered else None


SAFE = "index,name,uuid,pci.bus_id,driver_version,memory.total,memory.used"
"""CSV fields that every driver since 470 knows: one unknown field fails the whole query."""

SCRIPT = f"""
out=$(ask nvidia-smi -q -x); rc=$?
printf '%s\\n' "$out" | sed -e '/supported_graphics_clock/d' -e '/supported_mem_clock/d'
case $rc in
0) ask nvidia-smi --query-gpu=index,pci.bus_id,compute_cap --format=csv || : ;;
124 | 126 | 127) exit $rc ;;
*)
  ask nvidia-smi --query-gpu={SAFE} --format=csv && exit 0
  ask nvidia-smi ;;
esac
"""


def parse(section: Section) -> Reading[Gpus]:
    """Return the GPUs. A missing `nvidia-smi` is unknown: it proves nothing about the GPUs."""
    answer = looked(section, absent=())
    if isinstance(answer, Unknown | Absent):
        return answer
    if section.exit == 127:
        return Unknown("nvidia-smi is not installed", section.first)
    return join(smi.read_all(section.text))


PROBE = Probe("gpus", Gpus, SCRIPT, parse, seconds=30, tool="nvidia-smi")
