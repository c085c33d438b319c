"""The opt-in measurement and what it refuses to do."""

from __future__ import annotations

from pathlib import Path

from bringup.core.facts import Facts
from bringup.core.host import Host, Login
from bringup.core.reading import Known, Unknown
from bringup.core.rules import Status, World, judge
from bringup.core.script import Section
from bringup.probes import bandwidth
from bringup.probes.bandwidth import Bandwidth, bandwidth_probe
from bringup.rules import OPT_IN

NCCL_TESTS = """# nThread 1 nGpus 2 minBytes 1073741824 maxBytes 1073741824
# Using devices
#  Rank  0 Group  0 Pid   4711 on     node01 device  0 [0000:1b:00] NVIDIA B200
#  Rank  1 Group  0 Pid   4711 on     node01 device  1 [0000:43:00] NVIDIA B200
  1073741824     268435456     float     sum      -1   1702.4  630.72  630.72      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 630.72
#
"""


def status(gb_s: float) -> Status:
    facts = Facts({Bandwidth: Known(Bandwidth(gb_s, 8, "nccl-tests"))})
    world = World(Host("host", Login("host")), facts)
    (found,) = judge([row for row in OPT_IN if row.id == "FAB-08"], world)
    return found.status


def test_nccl_tests_are_read() -> None:
    assert bandwidth.read(NCCL_TESTS) == Known(
        Bandwidth(630.72, 2, "nccl-tests"), "# Avg bus bandwidth    : 630.72"
    )


def test_less_than_the_floor_fails() -> None:
    assert (status(149), status(151)) == (Status.FAIL, Status.PASS)


def test_a_busy_gpu_is_not_measured() -> None:
    reading = bandwidth.parse(Section("bandwidth", bandwidth.BUSY, "busy: process 4711\n"))
    assert isinstance(reading, Unknown)


def test_the_script_asks_who_uses_the_gpus_before_it_loads_them(tmp_path: Path) -> None:
    """A stand-in tool lists a process: nothing else is started."""
    import subprocess

    from bringup.core.script import compose

    tools = tmp_path / "usr" / "bin"
    tools.mkdir(parents=True)
    (tools / "nvidia-smi").write_text("#!/bin/sh\necho 4711\n")
    (tools / "all_reduce_perf").write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    for tool in tools.iterdir():
        tool.chmod(0o755)
    script = compose([bandwidth_probe().ask], nonce="n", root=str(tmp_path))
    subprocess.run(["sh", "-c", script], check=True, capture_output=True, timeout=300)
    assert not (tmp_path / "started").exists()
