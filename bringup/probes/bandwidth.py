"""Opt-in: how fast the GPUs of one host reduce among themselves (FAB-08). Never on a busy GPU."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..core.facts import Probe
from ..core.reading import Absent, Known, Reading, Unknown
from ..core.script import Section

BUSY = 5
"""Exit code by which the section says that a GPU is in use."""


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """Bus bandwidth of an all-reduce over all GPUs, in GB/s, and what measured it."""

    gb_s: float
    gpus: int
    by: str


# nccl-tests where it is installed; else torch's NCCL in one process, which needs no launcher.
SCRIPT = r"""
busy=$(ask nvidia-smi --query-compute-apps=pid --format=csv,noheader) || { echo "$busy"; exit 4; }
[ -z "$busy" ] || { echo "busy: process" $busy; exit 5; }
n=$(ask nvidia-smi -L | grep -c '^GPU ')
[ "$n" -gt 1 ] || { echo 'absent: one GPU has nobody to talk to'; exit 3; }
if tool all_reduce_perf >/dev/null; then
  ask all_reduce_perf -b 1G -e 1G -n 10 -g "$n"; exit $?
fi
ask python3 - "$n" <<'PY'
import sys, time
try:
    import torch
    import torch.cuda.nccl as nccl
except ImportError as error:
    print("no means:", error)
    raise SystemExit(4)
n, size = int(sys.argv[1]), 1 << 30
data = [torch.ones(size // 4, device=f"cuda:{i}") for i in range(n)]
def once():
    nccl.all_reduce(data, data)
def wait():
    for i in range(n):
        torch.cuda.synchronize(i)
for _ in range(3):
    once()
wait()
start = time.perf_counter()
for _ in range(10):
    once()
wait()
seconds = (time.perf_counter() - start) / 10
print("torch", torch.__version__, "gpus", n, "busbw", size / seconds * 2 * (n - 1) / n / 1e9)
PY
"""


def parse(section: Section) -> Reading[Bandwidth]:
    """Return the bandwidth; a busy GPU leaves it unknown, one GPU has none."""
    if section.trouble:
        return Unknown(section.trouble, section.first)
    if section.exit == 3 and section.first.startswith("absent: "):
        return Absent(section.first.removeprefix("absent: "))
    if section.exit == BUSY:
        return Unknown("a GPU is in use, nothing was measured", section.first)
    if section.exit != 0:
        return Unknown("nothing could measure it", section.text.strip().rpartition("\n")[2])
    return read(section.text)


def read(text: str) -> Reading[Bandwidth]:
    """Read what all_reduce_perf of nccl-tests or our own few lines printed."""
    if own := re.search(r"torch (\S+) gpus (\d+) busbw (\d+(?:\.\d+)?)", text):
        return Known(Bandwidth(float(own[3]), int(own[2]), f"torch {own[1]}"), own[0])
    average = re.search(r"# Avg bus bandwidth\s*:\s*(\d+(?:\.\d+)?)", text)
    ranks = len(re.findall(r"(?m)^#\s+Rank\s+\d+", text))
    if average is None:
        return Unknown("no bandwidth was printed", text.strip().rpartition("\n")[2])
    return Known(Bandwidth(float(average[1]), ranks, "nccl-tests"), average[0])


def bandwidth_probe() -> Probe[Bandwidth]:
    """Return the opt-in question; it loads all GPUs for some seconds."""
    return Probe(
        "bandwidth", Bandwidth, SCRIPT, parse, seconds=90, tool="nvidia-smi", volatile=True
    )
