"""Kernel modules: which are loaded, and which of those that GPUs and RDMA need are installed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..core.facts import Probe, looked
from ..core.reading import Known, Reading, Unknown
from ..core.script import Section

NEEDED = (
    "nvidia", "nvidia_uvm", "nvidia_modeset", "nvidia_drm", "nvidia_peermem", "nouveau",
    "mlx5_core", "mlx5_ib", "ib_core", "ib_uverbs", "ib_umad", "rdma_ucm", "rdma_cm", "ib_ipoib",
)  # fmt: skip
"""Modules that some check asks about."""


@dataclass(frozen=True, slots=True)
class KernelModules:
    """`loaded` and `installed` by name with underscores. A name that is missing was not told.

    A module built into the kernel counts as loaded.
    """

    loaded: Mapping[str, bool] = field(default_factory=dict)
    installed: Mapping[str, bool] = field(default_factory=dict)
    kernel: str = ""
    whole: bool = False  # every loaded module is listed

    def has(self, name: str) -> bool | None:
        """Tell whether a module is loaded; None where nobody looked."""
        return self.loaded.get(name, False if self.whole else None)


SCRIPT = rf"""
m=$R/proc/modules
[ -r "$m" ] || {{ [ -z "$R" ] && echo 'kernel without loadable modules'; exit 4; }}
sed 's/^\([^ ]*\) .*/loaded \1/' "$m"
k=$(uname -r); d=$R/lib/modules/$k
printf 'kernel %s\n' "$k"
if [ -r "$d/modules.dep" ]; then
  for n in {" ".join(NEEDED)}; do
    p=$(printf '%s' "$n" | sed 's/_/[-_]/g')
    if grep -q "/$p\.ko" "$d/modules.dep" 2>/dev/null; then echo "installed $n yes"
    elif grep -q "/$p\.ko" "$d/modules.builtin" 2>/dev/null; then echo "loaded $n"
    else echo "installed $n no"; fi
  done
fi
echo end
"""


def parse(section: Section) -> Reading[KernelModules]:
    """Return the modules; a list that does not reach its end is unknown."""
    answer = looked(section, absent=())
    if not isinstance(answer, Known):
        return answer
    lines = section.text.splitlines()
    if section.exit != 0 or "end" not in lines:
        return Unknown("the list of kernel modules could not be read", section.first)
    loaded = {n.replace("-", "_"): True for n in re.findall(r"(?m)^loaded (\S+)$", section.text)}
    installed = re.findall(r"(?m)^installed (\S+) (yes|no)$", section.text)
    kernel = re.search(r"(?m)^kernel (\S+)$", section.text)
    modules = KernelModules(
        loaded,
        {name: word == "yes" for name, word in installed},
        kernel[1] if kernel else "",
        whole=True,
    )
    return Known(modules, f"{len(loaded)} modules loaded")


def read_lsmod(text: str, pattern: str = "") -> Reading[KernelModules]:
    """Return what `lsmod` or /proc/modules lists. `pattern`: the grep that it went through.

    Of the modules that checks ask about, those which match the pattern and are not listed are
    surely not loaded.
    """
    names = [line.split()[0] for line in text.splitlines() if re.match(r"\w+\s+\d+\s", line)]
    loaded = {name.replace("-", "_"): True for name in names}
    missing = {name: False for name in NEEDED if name not in loaded and _matches(pattern, name)}
    return Known(
        KernelModules({**missing, **loaded}, whole=not pattern and bool(names)),
        " ".join(sorted(loaded)) or "no such module is loaded",
    )


def _matches(pattern: str, name: str) -> bool:
    try:
        return bool(pattern) and re.search(pattern, name) is not None
    except re.error:
        return False


PROBE = Probe("modules", KernelModules, SCRIPT, parse)
