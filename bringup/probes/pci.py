"""NVIDIA devices on the PCI bus, from sysfs: there whatever the driver says."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..core.facts import Probe, looked
from ..core.reading import Absent, Known, Reading, Unknown
from ..core.script import Section


@dataclass(frozen=True, slots=True)
class PciGpu:
    """One GPU on the bus. `driver` is the bound module, "none" where there is none."""

    bus_id: str = ""  # 0000:1b:00.0
    device: str = ""  # PCI device id, e.g. 2901
    name: str = ""  # as lspci knows it
    driver: str = ""
    width: int | None = None
    width_max: int | None = None
    speed: float | None = None  # GT/s
    speed_max: float | None = None
    is_gone: bool = False  # configuration space reads as all ones: fallen off the bus


@dataclass(frozen=True, slots=True)
class PciGpus:
    """All GPUs on the bus. `count` None: only some were listed. `switches`: NVSwitch devices.

    A bus without GPUs is absent, whatever cards are on it.
    """

    gpus: tuple[PciGpu, ...] | None = None
    count: int | None = None
    switches: int | None = None
    cards: int | None = None  # network functions of Mellanox, the makers of RDMA cards here
    is_loose: bool = False  # `count` may hold more than GPUs, NVSwitches for one


SCRIPT = r"""
d=$R/sys/bus/pci/devices
[ -d "$d" ] || { echo "no folder /sys/bus/pci/devices"; exit 4; }
get() { v=; { read -r v <"$1"; } 2>/dev/null; }
for f in "$d"/*; do
  get "$f/vendor"; m=$v
  case $m in 0x10de | 0x15b3) ;; *) continue ;; esac
  get "$f/class"; c=$v
  case $m$c in
  0x15b30x02*) printf 'card\t%s\n' "${f##*/}"; continue ;;
  0x15b3*) continue ;;
  esac
  case $c in 0x0300* | 0x0302*) k=gpu ;; 0x0680*) k=switch ;; *) continue ;; esac
  get "$f/device"; i=$v
  b=none; [ -e "$f/driver" ] && { b=$(readlink -f "$f/driver"); b=${b##*/}; }
  get "$f/current_link_width"; w=$v; get "$f/max_link_width"; W=$v
  get "$f/current_link_speed"; s=$v; get "$f/max_link_speed"; S=$v
  r=ok
  [ "$(od -An -tx1 -N4 "$f/config" 2>/dev/null | tr -d ' ')" = ffffffff ] && r=gone
  printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' $k "${f##*/}" "$i" "$b" \
    "${w:--}" "${W:--}" "${s:--}" "${S:--}" $r
done
echo 'end of devices'
"""


def parse(section: Section) -> Reading[PciGpus]:
    """Return the GPUs; absent only where the bus was read to its end and holds none."""
    answer = looked(section, absent=())
    if not isinstance(answer, Known):
        return answer
    if section.exit != 0 or "end of devices" not in section.text:
        return Unknown("the PCI bus could not be read", section.first)
    rows = [line.split("\t") for line in section.text.splitlines() if line.count("\t") == 8]
    gpus = tuple(_gpu(*row[1:]) for row in rows if row[0] == "gpu")
    if not gpus:
        return Absent("no NVIDIA GPU on the PCI bus")
    switches = sum(row[0] == "switch" for row in rows)
    cards = len(re.findall(r"(?m)^card\t", section.text))
    return Known(
        PciGpus(gpus, len(gpus), switches, cards), f"{len(gpus)} NVIDIA GPUs on the PCI bus"
    )


def _gpu(bus: str, *told: str) -> PciGpu:
    device, driver, width, top, speed, fastest, state = told
    return PciGpu(
        bus,
        device.removeprefix("0x"),
        driver=driver,
        width=_width(width),
        width_max=_width(top),
        speed=_speed(speed),
        speed_max=_speed(fastest),
        is_gone=state == "gone",
    )


def _width(word: str) -> int | None:
    """Widths above 32 stand for "unknown" in the kernel (255)."""
    return int(word) if word.isdecimal() and int(word) <= 32 else None


def _speed(word: str) -> float | None:
    found = re.match(r"(\d+(?:\.\d+)?) GT/s", word)
    return float(found[1]) if found else None


PROBE = Probe("pci", PciGpus, SCRIPT, parse)
