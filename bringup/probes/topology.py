"""How GPUs are joined: the matrix of `topo -m`, peer access, and the NVLinks of each GPU."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ..core.facts import Probe, looked
from ..core.reading import Known, Reading, Unknown
from ..core.script import Section
from .readers import topo


@dataclass(frozen=True, slots=True)
class Topology:
    """None: not told. Matrices are rows of words by GPU index, the diagonal is "X".

    `links` says NV18, NODE, SYS, …; `peers` says OK, CNS, …; `nvlinks` are GB/s by link, None for
    an inactive one.
    """

    links: tuple[tuple[str, ...], ...] | None = None
    peers: tuple[tuple[str, ...], ...] | None = None
    nvlinks: Mapping[int, tuple[float | None, ...]] | None = None
    cpus: tuple[str, ...] | None = None
    numa: tuple[int | None, ...] | None = None
    nics: tuple[str, ...] | None = None


SCRIPT = r"""
echo '@topo'; ask nvidia-smi topo -m; r=$?; [ $r = 127 ] && exit 127
echo '@peers'; ask nvidia-smi topo -p2p r
echo '@links'; ask nvidia-smi nvlink -s
echo '@end'
"""


def parse(section: Section) -> Reading[Topology]:
    """Return the topology; parts that cannot be read stay None."""
    answer = looked(section, absent=())
    if not isinstance(answer, Known):
        return answer
    if section.exit == 127:
        return Unknown("nvidia-smi is not installed", section.first)
    parts = dict(re.findall(r"(?ms)^@(\w+)\n(.*?)(?=^@|\Z)", section.text))
    matrix = topo.read_matrix(parts.get("topo", ""))
    peers = topo.read_matrix(parts.get("peers", ""))
    topology = Topology(
        links=matrix.gpus or None,
        peers=peers.gpus or None,
        nvlinks=topo.read_links(parts.get("links", "")) or None,
        cpus=matrix.cpus or None,
        numa=matrix.numa or None,
        nics=matrix.nics or None,
    )
    if topology == Topology():
        return Unknown("nvidia-smi told no topology", section.first)
    return Known(topology, topo.shown(matrix))


PROBE = Probe("topology", Topology, SCRIPT, parse, seconds=15, tool="nvidia-smi")
