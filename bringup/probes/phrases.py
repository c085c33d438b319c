"""Words for what changed on a host since it was last looked at."""

from __future__ import annotations

from ..core.changes import Phrase
from ..core.probed import words

IGNORED = (
    "temperature_c", "margin_c", "memory_used_mib", "slowdowns", "processes", "pcie_gen",
    "uptime_s", "power_limit_shown", "said", "restarts", "epoch_s",
)  # fmt: skip
"""Fields that change by themselves in facts that otherwise stay."""


def _moved(what: str, old: str, new: str) -> str:
    if not old:
        return f"{what} is now {new}"
    return f"{what} went from {old} to {new}" if new else f"{what}, which was {old}, is not told"


def _driver(_groups: tuple[str, ...], old: str, new: str) -> str:
    return _moved("the GPU driver", old, new)


def _gpu(groups: tuple[str, ...], old: str, _new: str) -> str:
    return f"GPU {groups[0]} is {_come(old)}"


def _port(groups: tuple[str, ...], old: str, new: str) -> str:
    if new == "ACTIVE":
        return f"port {groups[0]} came up (was {old or 'not told'})"
    return f"port {groups[0]} went down: {old} → {new or 'not told'}"


def _device(groups: tuple[str, ...], old: str, _new: str) -> str:
    return f"RDMA device {groups[0]} is {_come(old)}"


def _field(groups: tuple[str, ...], old: str, new: str) -> str:
    return _moved(f"{groups[1].replace('_', ' ')} of {groups[0]}", old, new)


def _come(old: str) -> str:
    return "gone" if old else "new"


def _plainly(groups: tuple[str, ...], old: str, new: str) -> str:
    """Tell of a list what came and went, of anything else how it moved."""
    what = f"{groups[1].replace('_', ' ')} of {words(groups[0])}"
    before, after = old.split(), new.split()
    if len(before) < 3 or len(after) < 3:
        return _moved(what, old, new)
    parts = (
        ("gone", [word for word in before if word not in after]),
        ("new", [word for word in after if word not in before]),
    )
    return f"{what}: " + ", ".join(f"{' '.join(own)} {how}" for how, own in parts if own)


def _whole(groups: tuple[str, ...], old: str, new: str) -> str:
    what = words(groups[0])
    if new.startswith("unknown"):
        return f"{what}: cannot be read any more ({new.removeprefix('unknown: ')})"
    if old.startswith("unknown"):
        return f"{what}: can be read again"
    if "absent" not in (old, new):
        return ""
    return f"{what}: not there any more" if new == "absent" else f"{what}: now there"


PHRASES: tuple[Phrase, ...] = (
    Phrase(r"Gpus\.driver", _driver),
    Phrase(r"Gpus\.gpus\[([^]]+)\]", _gpu),
    Phrase(r"InfiniBand\.devices\[([^]]+)\]\.state", _port),
    Phrase(r"InfiniBand\.devices\[([^]]+)\]", _device),
    Phrase(r"Gpus\.gpus\[([^]]+)\]\.(\w+)", lambda g, o, n: _field((f"GPU {g[0]}", g[1]), o, n)),
    Phrase(r"InfiniBand\.devices\[([^]]+)\]\.(\w+)", _field),
    Phrase(r"Identity\.kernel", lambda _g, o, n: _moved("the kernel", o, n)),
    Phrase(r"Nvcc\.full", lambda _g, o, n: _moved("nvcc", o, n)),
    Phrase(r"ContainerEngine\.version", lambda _g, o, n: _moved("the container engine", o, n)),
    Phrase(r"StoredImage\.id", lambda _g, o, n: _moved("the image", o[:19], n[:19])),
    Phrase(r"ModelFolder\.files\[([^]]+)\]", lambda g, o, _n: f"{g[0]} is {_come(o)}"),
    Phrase(r"(\w+)\.(\w+)(?:\.value)?", _plainly),
    Phrase(r"(\w+)", _whole),
)
