"""A kind learned from a good host is what the inventory reads, and what the host then meets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from bringup.core.errors import UsageError
from bringup.core.facts import Facts
from bringup.core.reading import Known, Unknown
from bringup.edge.inventory import load
from bringup.probes.golden import kind_text
from bringup.probes.gpu import Gpu, Gpus
from bringup.probes.hca import Hca, InfiniBand, Purpose
from bringup.probes.topology import Topology

GPU = Gpu(
    0, "NVIDIA B300 SXM6 AC", compute_capability="10.3", memory_mib=275040, power_limit_w=1100.0,
    fabric_state="Completed",
)  # fmt: skip
GPUS = Gpus("580.95.05", "13.0", tuple(replace(GPU, index=i) for i in range(8)))
NICS = tuple(Hca(f"mlx5_{i}", Purpose.COMPUTE, "ACTIVE", rate_gb_s=800.0) for i in range(8))
LINKS = Topology(nvlinks=dict.fromkeys(range(8), (53.125,) * 18))
FACTS = Facts({
    Gpus: Known(GPUS), InfiniBand: Known(InfiniBand(NICS)), Topology: Known(LINKS)
})  # fmt: skip


def test_a_good_host_states_what_was_read() -> None:
    told = yaml.safe_load(kind_text(FACTS, name="b300-ours", host="b300-04"))
    assert told["product_names"] == ["NVIDIA B300 SXM6 AC"]
    assert (told["compute_capability"], told["gpu_count"], told["memory_mib"]) == (
        "10.3",
        8,
        275040,
    )
    assert (told["nvlinks"], told["nvlink_gb_s"]) == (18, 53.125)
    assert (told["rate_gb_s_per_gpu"], told["fabric_manager"], told["form"]) == (800, True, "hgx")


def test_the_inventory_takes_the_file(tmp_path: Path) -> None:
    (tmp_path / "kinds").mkdir()
    (tmp_path / "hosts.yml").write_text("hosts:\n  b300-04: {address: 192.0.2.4, kind: ours}\n")
    (tmp_path / "kinds/ours.yml").write_text(kind_text(FACTS, name="ours", host="b300-04"))
    kind = load(tmp_path).kinds["ours"]
    assert (kind.gpu_count, kind.memory_mib, kind.power_w) == (8, 275040, 1100)
    assert (kind.rate_gb_s_per_gpu, kind.nvlinks, kind.fabric_manager) == (800.0, 18, True)


def test_a_port_that_is_down_states_no_rate() -> None:
    down = InfiniBand((replace(NICS[0], state="DOWN"), *NICS[1:]))
    text = kind_text(FACTS.replace(InfiniBand, Known(down)), name="x", host="h")
    assert "rate_gb_s_per_gpu" not in text


@pytest.mark.parametrize(
    ("gpus", "said"),
    [
        (Unknown("timed out"), "its GPUs are not known"),
        (Known(replace(GPUS, gpus=(GPU, replace(GPU, index=1, name="NVIDIA B200")))), "GPU 1"),
    ],
)
def test_a_host_that_is_no_example_is_refused(gpus: Known[Gpus] | Unknown, said: str) -> None:
    with pytest.raises(UsageError, match="cannot learn a kind from h") as caught:
        kind_text(FACTS.replace(Gpus, gpus), name="x", host="h")
    assert said in caught.value.message
