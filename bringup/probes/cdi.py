"""CDI specifications and device links: how containers come to GPUs, and keep them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..core.facts import Probe
from ..core.reading import Absent, Known, Reading, Unknown
from ..core.script import Section
from .text import GET, answered, first, natural, rows, told, whole


@dataclass(frozen=True, slots=True)
class CdiSpec:
    """One CDI specification file that offers GPUs. `driver` is the one it was made for."""

    path: str
    driver: str = ""
    devices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CdiSpecs:
    """All CDI specification files with NVIDIA devices."""

    specs: tuple[CdiSpec, ...]


@dataclass(frozen=True, slots=True)
class DeviceLinks:
    """How many links in /dev/char lead to NVIDIA devices: by them systemd knows the devices."""

    nvidia: int


# On most distributions /var/run is a link to /run, and outside the root folder it would be ours.
CDI = r"""
for d in /etc/cdi /run/cdi /var/run/cdi; do
  [ "$d" = /var/run/cdi ] && [ -h "$R/var/run" ] && continue
  [ -d "$R$d" ] || continue
  [ -r "$R$d" ] || { echo "unreadable	$d"; continue; }
  for f in "$R$d"/*.yaml "$R$d"/*.yml "$R$d"/*.json; do
    [ -e "$f" ] || continue
    [ -r "$f" ] || { printf 'unreadable\t%s\n' "${f#"$R"}"; continue; }
    printf 'spec\t%s\n' "${f#"$R"}"
    grep -oE '"?kind"?: *"?[A-Za-z.]+/[a-z]+' "$f" | sed 's/^/kind	/'
    grep -oE 'lib(cuda|nvidia-ml)\.so\.[0-9]+(\.[0-9]+)+' "$f" | sort -u | sed 's/^/library	/'
    grep -oE '^ *(- )?"?name"?: *"?[A-Za-z0-9:._-]+' "$f" | sed 's/^/device	/'
  done
done
echo "end	of specifications"
"""


def parse_cdi(section: Section) -> Reading[CdiSpecs]:
    """Return the specifications with NVIDIA GPUs; unknown where a file cannot be read."""
    answer = answered(section)
    if not isinstance(answer, Known):
        return answer
    if "end\tof specifications" not in answer.value:
        return Unknown("the list of CDI files was cut off", section.first)
    files: dict[str, dict[str, list[str]]] = {}
    path = ""
    for key, value, *_ in rows(answer.value):
        path = value if key == "spec" else path
        files.setdefault(path, {}).setdefault(key, []).append(value)
    hidden = first(told(answer.value), "unreadable")
    found = tuple(_spec(path, told) for path, told in files.items() if _offers_gpus(told))
    if not found and hidden:
        return Unknown(f"permission denied: {hidden}")
    if not found:
        return Absent("no CDI specification with NVIDIA devices")
    return Known(CdiSpecs(found), ", ".join(f"{s.path} for driver {s.driver}" for s in found))


def _offers_gpus(told: Mapping[str, list[str]]) -> bool:
    return any("nvidia.com/gpu" in kind for kind in told.get("kind", ()))


def _spec(path: str, told: Mapping[str, list[str]]) -> CdiSpec:
    numbers = {library.partition(".so.")[2] for library in told.get("library", ())}
    names = (line.partition("name")[2].strip(' ":') for line in told.get("device", ()))
    return CdiSpec(path, max(numbers, key=natural, default=""), tuple(names))


LINKS = (
    GET
    + r"""
[ -d "$R/dev" ] || { echo "no folder /dev"; exit 4; }
n=0
for f in "$R"/dev/char/*; do
  [ -h "$f" ] || continue
  case $(readlink "$f") in *nvidia*) n=$((n + 1)) ;; esac
done
say nvidia $n
"""
)


def parse_links(section: Section) -> Reading[DeviceLinks]:
    """Return how many device links there are."""
    answer = answered(section)
    if not isinstance(answer, Known):
        return answer
    number = whole(first(told(answer.value), "nvidia"))
    if number is None:
        return Unknown("no count of links", section.first)
    return Known(DeviceLinks(number), f"{number} NVIDIA links in /dev/char")


PROBES = (
    Probe("cdi", CdiSpecs, CDI, parse_cdi),
    Probe("device_links", DeviceLinks, LINKS, parse_links),
)
