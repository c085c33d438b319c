"""How the kernel was started, and the modules in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import takewhile

from ..core.facts import Probe
from ..core.reading import Known, Reading, Unknown
from ..core.script import Section
from .text import GET, answered, first, told


@dataclass(frozen=True, slots=True)
class Boot:
    """How the kernel was started, and on what. `identity` holds its release.

    `platform` is vendor and product as the firmware names them, `has_iommu` says that the kernel
    runs one, None that nothing tells.
    """

    command_line: tuple[str, ...]
    platform: str = ""
    has_systemd: bool = False
    has_iommu: bool | None = None


NEEDED = (
    "nvidia", "nvidia_uvm", "nvidia_peermem", "nouveau", "mlx5_core", "mlx5_ib", "ib_core",
    "ib_uverbs", "ib_umad", "rdma_ucm", "rdma_cm",
)  # fmt: skip
"""Modules that some check asks about."""


@dataclass(frozen=True, slots=True)
class Modules:
    """Kernel modules: those loaded, and those built in as far as /sys/module shows them.

    `missing` are surely not loaded: all others where the list is `whole`. `installed` says for
    those of `NEEDED` whether the running kernel has them on disk; a missing name was not told.
    """

    loaded: tuple[str, ...]
    present: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    installed: Mapping[str, bool] = field(default_factory=dict)
    whole: bool = True

    def __contains__(self, name: object) -> bool:
        return name in self.loaded or name in self.present

    def has(self, name: str) -> bool | None:
        """Tell whether a module is in the kernel; None where nobody looked."""
        if name in self:
            return True
        return False if self.whole or name in self.missing else None


BOOT = (
    GET
    + r"""
tell cmdline /proc/cmdline
tell vendor /sys/class/dmi/id/sys_vendor
tell product /sys/class/dmi/id/product_name
[ -d "$R/run/systemd/system" ] && say systemd yes
if [ -d "$R/sys/kernel/iommu_groups" ]; then
  set -- "$R"/sys/kernel/iommu_groups/*; [ -e "$1" ] && say iommu yes || say iommu no
fi
say end boot
"""
)


def parse_boot(section: Section) -> Reading[Boot]:
    """Return the kernel's command line and platform."""
    answer = answered(section)
    if not isinstance(answer, Known):
        return answer
    found = told(answer.value)
    if first(found, "end") != "boot" or "cmdline" not in found:
        return Unknown("no kernel command line", section.first)
    platform = f"{first(found, 'vendor')} {first(found, 'product')}".strip()
    words = tuple(takewhile(lambda word: word != "--", first(found, "cmdline").split()))
    has_iommu = {"yes": True, "no": False}.get(first(found, "iommu"))
    boot = Boot(words, platform, first(found, "systemd") == "yes", has_iommu)
    return Known(boot, " ".join(words)[:200])


MODULES = (
    r"""
if [ -e "$R/proc/modules" ] || [ ! -d "$R/sys/module" ]; then cat "$R/proc/modules" || exit 4; fi
[ -d "$R/sys/module" ] && for f in "$R"/sys/module/*; do printf 'present\t%s\n' "${f##*/}"; done
d=$R/lib/modules/$(cat "$R/proc/sys/kernel/osrelease" 2>/dev/null || uname -r)
[ -r "$d/modules.dep" ] && sed -n 's/^[^:]*\/\([^/:]*\)\.ko[.a-z]*:.*/\1/p' "$d/modules.dep" |
  tr - _ | grep -x"""
    + "".join(f" -e {name}" for name in NEEDED)
    + r""" | sed 's/^/disk	/'
[ -r "$d/modules.dep" ] && printf 'disk\tend\n'
printf 'end\tof modules\n'
"""
)


def parse_modules(section: Section) -> Reading[Modules]:
    """Read /proc/modules and the names in /sys/module.

    A kernel that can load no modules has no /proc/modules; what is built in stands in /sys/module.
    """
    answer = answered(section)
    if not isinstance(answer, Known):
        return answer
    if "end\tof modules" not in answer.value:
        return Unknown("the list of modules was cut off", section.first)
    found = told(answer.value)
    loaded = re.findall(r"^([A-Za-z0-9_]+) +[0-9]+ ", answer.value, flags=re.MULTILINE)
    present = [name for name in found.get("present", ()) if name != "*"]
    if not loaded and not present:
        return Unknown("no module is listed", section.first)
    disk = found.get("disk", ())
    modules = Modules(
        tuple(sorted(set(loaded))),
        tuple(sorted(set(present) - set(loaded))),
        installed={name: name in disk for name in NEEDED} if "end" in disk else {},
    )
    return Known(modules, f"{len(set(loaded))} modules loaded")


def read_lsmod(text: str, pattern: str = "") -> Reading[Modules]:
    """Return what ``lsmod`` or /proc/modules lists. `pattern`: the grep that it went through.

    Modules of `NEEDED` that match the pattern and are not listed are surely not loaded.
    """
    loaded = {name.replace("-", "_") for name in re.findall(r"(?m)^([\w-]+) +\d+ ", text)}
    missing = {name for name in NEEDED if name not in loaded and _matches(pattern, name)}
    if not loaded and not missing:
        return Unknown("no module is listed", text.strip().partition("\n")[0])
    modules = Modules(tuple(sorted(loaded)), (), tuple(sorted(missing)), whole=not pattern)
    return Known(modules, ", ".join(sorted(loaded)) or f"lsmod lists nothing like {pattern}")


def _matches(pattern: str, name: str) -> bool:
    try:
        return bool(pattern) and re.search(pattern, name, re.IGNORECASE) is not None
    except re.error:
        return False


PROBES = (
    Probe("boot", Boot, BOOT, parse_boot),
    Probe("modules", Modules, MODULES, parse_modules),
)
