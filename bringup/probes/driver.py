"""The NVIDIA driver: the module in the kernel, what lies on disk beside it, its device nodes."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..core.facts import Probe, looked
from ..core.reading import Absent, Known, Reading, Unknown
from ..core.script import Section
from .parts import NOT_ASKED


@dataclass(frozen=True, slots=True)
class Driver:
    """Versions as they are told; `library` may be NVML's short form (570.195).

    `bound` are the GPUs that the module drives. `upgraded` is a package log line that shows the
    driver being replaced by itself.
    """

    loaded: Reading[str] = NOT_ASKED
    is_open: bool | None = None
    on_disk: Reading[str] = NOT_ASKED
    library: Reading[str] = NOT_ASKED
    bound: int | None = None
    uvm_node: bool | None = None
    control_node: bool | None = None  # /dev/nvidiactl
    gpu_nodes: int | None = None  # /dev/nvidia0 and so on
    persistenced: str = ""  # ActiveState of nvidia-persistenced
    hmm_disabled: bool | None = None
    upgraded: str = ""
    built: str = ""  # what DKMS says of the running kernel
    closed: tuple[str, ...] = ()  # device files, with their modes, that this login may not open


SCRIPT = r"""
p=$R/proc/driver/nvidia
if [ -d "$R/proc" ]; then
  if [ -r "$p/version" ]; then sed 's/^/version /' "$p/version"
  else echo 'absent /proc/driver/nvidia/version'; fi
  n=0; for f in "$p"/gpus/*; do [ -e "$f" ] && n=$((n + 1)); done; echo "bound $n"
fi
if [ -z "$R" ] && tool modinfo >/dev/null; then
  v=$(modinfo -F version nvidia 2>&1) && echo "disk $v" || echo "absent module on disk: $v"
fi
for f in "$R"/usr/lib/x86_64-linux-gnu "$R"/usr/lib/aarch64-linux-gnu "$R"/usr/lib64 \
  "$R"/usr/local/nvidia/lib64 "$R"/usr/lib; do
  l=$(readlink -f "$f/libnvidia-ml.so.1" 2>/dev/null) && [ -e "$l" ] || continue
  echo "library ${l##*libnvidia-ml.so.}"; break
done
if [ -d "$R/dev" ]; then
  for f in nvidia-uvm nvidiactl; do
    [ -e "$R/dev/$f" ] && echo "node $f yes" || echo "node $f no"
  done
  n=0; for f in "$R"/dev/nvidia[0-9]*; do [ -e "$f" ] && n=$((n + 1)); done; echo "nodes $n"
fi
f=$R/sys/module/nvidia_uvm/parameters/uvm_disable_hmm
[ -r "$f" ] && echo "hmm $(cat "$f")"
if tool systemctl >/dev/null; then
  echo "persistenced $(ask systemctl show -p ActiveState nvidia-persistenced 2>/dev/null)"
fi
for f in "$R"/var/log/apt/history.log; do
  [ -r "$f" ] && grep -A 4 'unattended-upgrade' "$f" |
    grep -o 'Upgrade: .*nvidia[^,]*,[^)]*)' | tail -n 1 | sed 's/^/upgraded /'
done
echo end
"""


def parse(section: Section) -> Reading[Driver]:
    """Return what is known of the driver; a module that is not loaded is a field, not absence."""
    answer = looked(section, absent=())
    if not isinstance(answer, Known):
        return answer
    text = section.text
    if not re.search(r"(?m)^end$", text):
        return Unknown("the driver's files could not be read to the end", section.first)
    version = "\n".join(re.findall(r"(?m)^version (.*)$", text))
    part = read_proc(version)
    driver = Driver(
        loaded=_loaded(part, text),
        is_open=part.is_open,
        on_disk=_reading(text, "disk", "module on disk: .*"),
        library=_reading(text, "library", "library"),
        bound=_number(text, "bound"),
        uvm_node=_flag(text, "node nvidia-uvm"),
        control_node=_flag(text, "node nvidiactl"),
        gpu_nodes=_number(text, "nodes"),
        persistenced=_word(text, "persistenced").removeprefix("ActiveState="),
        hmm_disabled={"Y": True, "1": True, "N": False, "0": False}.get(_word(text, "hmm")),
        upgraded=_word(text, "upgraded"),
    )
    return Known(driver, version.split("\n")[0] or "no NVIDIA module is loaded")


def read_proc(text: str) -> Driver:
    """Return what /proc/driver/nvidia/version tells: version, open or proprietary."""
    line = next((line for line in text.splitlines() if line.startswith("NVRM version:")), "")
    found = re.search(r"\s(\d{3}(?:\.\d+)+)\s", f"{line} ")
    if found is None:
        return Driver(loaded=Unknown("the version line has no version", line))
    return Driver(
        loaded=Known(found[1], line.strip()),
        is_open="Open Kernel Module" in line if "Kernel Module" in line else None,
    )


def _loaded(part: Driver, text: str) -> Reading[str]:
    if "absent /proc/driver/nvidia/version" in text:
        return Absent("/proc/driver/nvidia/version is not there: no NVIDIA module is loaded")
    return part.loaded if re.search(r"(?m)^version ", text) else NOT_ASKED


def _reading(text: str, key: str, absent: str) -> Reading[str]:
    if found := re.search(rf"(?m)^absent ({absent})$", text):
        return Absent(found[1])
    word = _word(text, key)
    return Known(word, f"{key} {word}") if re.match(r"\d+\.\d", word) else NOT_ASKED


def _word(text: str, key: str) -> str:
    found = re.search(rf"(?m)^{key} (.+)$", text)
    return found[1].strip() if found else ""


def _number(text: str, key: str) -> int | None:
    word = _word(text, key)
    return int(word) if word.isdecimal() else None


def _flag(text: str, key: str) -> bool | None:
    return {"yes": True, "no": False}.get(_word(text, key))


PROBE = Probe("driver", Driver, SCRIPT, parse)
