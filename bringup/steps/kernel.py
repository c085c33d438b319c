"""Step kinds: a kernel module and a kernel setting, now and at every start."""

from __future__ import annotations

from ..core.steps import Run, Step
from ..core.words import HostPath, quote
from .file import text_file

_MODULE = """
[ -d {folder} ] && echo loaded || echo "not loaded"
"""


def module_steps(name: str, *, why: str = "") -> tuple[Step, Step]:
    """Return the steps that load a module now and at every start."""
    at_start = text_file(
        f"/etc/modules-load.d/bringup-{name}.conf", f"{name}\n",
        title=f"load {name} at every start", why=why,
    )  # fmt: skip
    folder = HostPath(f"/sys/module/{name.replace('-', '_')}")
    now = Step(
        id=f"module:{name}",
        title=f"load {name}",
        observe=_MODULE.format(folder=quote(folder)),
        wanted="loaded",
        actions=(Run(("modprobe", name), seconds=60),),
        why=why,
    )
    return at_start, now


_SYSCTL = """
f={path}
[ -e "$f" ] || {{ echo absent; exit 0; }}
cat "$f" | tr '\\t' ' '
"""


def sysctl_steps(key: str, value: str, *, why: str = "") -> tuple[Step, Step]:
    """Return the steps that set a kernel setting now and at every start.

    Keys are dotted names as in ``kernel.numa_balancing``.
    """
    name = key.replace(".", "-").replace("/", "-")
    kept = text_file(
        f"/etc/sysctl.d/90-bringup-{name}.conf", f"{key} = {value}\n",
        title=f"set {key} at every start", why=why,
    )  # fmt: skip
    place = HostPath("/proc/sys/" + key.replace(".", "/"))
    now = Step(
        id=f"sysctl:{key}",
        title=f"set {key} to {value}",
        observe=_SYSCTL.format(path=quote(place)),
        wanted=value,
        actions=(Run(("sysctl", "-q", "-w", f"{key}={value}")),),
        why=why,
    )
    return kept, now
