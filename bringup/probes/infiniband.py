"""RDMA devices from sysfs: what each is for, its port, its rate, and how near each GPU it sits.

No tool is needed. What a device is for is decided in `hca_purpose`; second sources
(ibstat, ibv_devinfo, rdma, lspci) are read in `readers.infiniband`.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..core.facts import Probe
from ..core.reading import Absent, Known, Reading, Unknown
from ..core.script import Section
from .hca import (
    GpuSlot,
    Hca,
    InfiniBand,
    Purpose,
    Sighting,
    nccl_ib_hca,
    rail_order,
    shown,
    ucx_net_devices,
)
from .hca_purpose import classified
from .text import answered, decimal, rows, whole

__all__ = [
    "PROBE",
    "GpuSlot",
    "Hca",
    "InfiniBand",
    "Purpose",
    "Sighting",
    "nccl_ib_hca",
    "parse",
    "rail_order",
    "shown",
    "sightings",
    "ucx_net_devices",
]


SCRIPT = r"""
c=$R/sys/class/infiniband
[ -d "$R/sys/class" ] || { echo "no folder /sys/class"; exit 4; }
[ -d "$c" ] || { echo "absent: no folder /sys/class/infiniband"; exit 3; }
root=$(cd "$R/" && pwd -P); root=${root%/}
say() { printf '%s\t%s\t%s\n' "$1" "$2" "$3"; }
get() { v=; { read -r v <"$1"; } 2>/dev/null; v=${v%"$(printf '\r')"}; }
for f in "$R"/sys/bus/pci/devices/*; do
  get "$f/vendor"; [ "$v" = 0x10de ] || continue
  get "$f/class"; case $v in 0x0300* | 0x0302*) ;; *) continue ;; esac
  p=$(readlink -f "$f"); get "$f/numa_node"
  printf 'gpu\t%s\t%s\t%s\n' "${f##*/}" "${p#"$root/sys"}" "$v"
done
for f in "$c"/*; do
  [ -d "$f" ] || continue
  d=${f##*/}; say "$d" seen yes
  p=$(readlink -f "$f/device") && { say "$d" path "${p#"$root/sys"}"; say "$d" bus "${p##*/}"; }
  for k in fw_ver sys_image_guid; do get "$f/$k"; say "$d" $k "$v"; done
  for k in vendor device numa_node; do get "$f/device/$k"; say "$d" $k "$v"; done
  [ -e "$f/device/physfn" ] && say "$d" physfn yes
  for n in "$f"/device/net/*; do
    [ -e "$n" ] || continue
    say "$d" net "${n##*/}"; get "$n/mtu"; say "$d" mtu "$v"
  done
  for q in "$f"/ports/*; do
    [ -d "$q" ] || continue
    for k in state phys_state rate link_layer lid sm_lid; do
      get "$q/$k"; printf '%s\t%s\t%s\t%s\n' "$d" port "${q##*/}" "$k=$v"
    done
    for i in 0 1 2 3 4 5 6 7; do
      get "$q/gid_attrs/types/$i"
      case $v in *v2*) printf '%s\tport\t%s\tgid=%s\n' "$d" "${q##*/}" "$v"; break ;; esac
    done
  done
done
limit=
command -v timeout >/dev/null && limit='timeout -k 1 4'
$limit sh -c 'for f in "$@"; do
  d=${f%/device/vpd}; d=${d##*/}
  [ -e "$f" ] || continue
  t=$(tr -d "\000" <"$f" 2>/dev/null)
  case $t in "") t=unreadable ;; *SW_MNG*) t=SW_MNG ;; *) t=other ;; esac
  printf "%s\tvpd\t%s\n" "$d" "$t"
done' sh "$c"/*/device/vpd
echo "end	of devices"
"""


def sightings(text: str) -> tuple[tuple[Sighting, ...], tuple[GpuSlot, ...]]:
    """Return the devices and GPUs in the lines of `SCRIPT`, whatever their order."""
    values: dict[str, dict[str, str]] = {}
    ports: dict[str, dict[int, dict[str, str]]] = {}
    slots: list[GpuSlot] = []
    for first, key, *rest in rows(text):
        if first == "gpu" and len(rest) == 2:
            slots.append(GpuSlot(key, rest[0], _node(rest[1])))
        elif key == "port" and len(rest) == 2 and whole(rest[0]) is not None:
            name, _, value = rest[1].partition("=")
            ports.setdefault(first, {}).setdefault(int(rest[0]), {})[name] = value.strip()
        elif rest:
            values.setdefault(first, {})[key] = rest[0]
    devices = (
        _sighting(name, told, ports.get(name, {}))
        for name, told in values.items()
        if told.get("seen") == "yes"
    )
    return tuple(devices), tuple(sorted(slots, key=lambda slot: slot.bus_id))


def _sighting(
    name: str, told: Mapping[str, str], ports: Mapping[int, Mapping[str, str]]
) -> Sighting:
    number, port = _best(ports)
    vendor, device = told.get("vendor", ""), told.get("device", "")
    return Sighting(
        name,
        bus_id=told.get("bus", "") if told.get("bus", "").count(":") == 2 else "",
        path=told.get("path", ""),
        part=f"{vendor.removeprefix('0x')}:{device.removeprefix('0x')}" if vendor else "",
        image_guid=told.get("sys_image_guid", ""),
        firmware=told.get("fw_ver", ""),
        numa=_node(told.get("numa_node", "")),
        netdev=told.get("net", ""),
        is_virtual=told.get("physfn") == "yes",
        switch_management={"SW_MNG": True, "other": False}.get(told.get("vpd", "")),
        port=number,
        state=port.get("state", "").rpartition(":")[2].strip(),
        physical=port.get("phys_state", "").rpartition(":")[2].strip(),
        rate_gb_s=decimal(port.get("rate", "").partition(" ")[0]),
        link_layer=port.get("link_layer", ""),
        gid=port.get("gid", ""),
        mtu=whole(told.get("mtu", "")),
        lid=_lid(port.get("lid", "")),
        sm_lid=_lid(port.get("sm_lid", "")),
    )


def _best(ports: Mapping[int, Mapping[str, str]]) -> tuple[int, Mapping[str, str]]:
    """Return the first port that is active, else the first one."""
    numbered = sorted(ports.items())
    active = (item for item in numbered if "ACTIVE" in item[1].get("state", "").split())
    return next(active, numbered[0] if numbered else (1, {}))


def _node(text: str) -> int | None:
    """The kernel says -1 where the firmware names no NUMA node."""
    number = whole(text)
    return number if number is not None and number >= 0 else None


def _lid(text: str) -> int | None:
    word = text.strip().lower()
    digits = word.removeprefix("0x")
    is_hexadecimal = word.startswith("0x") and digits and not digits.strip("0123456789abcdef")
    return int(digits, 16) if is_hexadecimal else whole(word)


def parse(section: Section) -> Reading[InfiniBand]:
    """Return the classified devices; absent only where sysfs is there and lists none."""
    answer = answered(section)
    if not isinstance(answer, Known):
        return answer
    devices, slots = sightings(answer.value)
    if "end\tof devices" not in answer.value:
        return Unknown("the list of devices was cut off", section.first)
    if not devices:
        empty = all(fields[0] in ("gpu", "end") for fields in rows(answer.value))
        return (
            Absent("/sys/class/infiniband is empty")
            if empty
            else Unknown("no device could be read", section.first)
        )
    ib = classified(devices, slots)
    return Known(ib, shown(ib.devices))


PROBE = Probe("infiniband", InfiniBand, SCRIPT, parse, seconds=8)
PROBES = (PROBE,)
