"""What changed on a host, in words, without what changes by itself."""

# ruff: noqa: E501 - one row a change

from __future__ import annotations

from dataclasses import replace

import pytest

from bringup.core.changes import Change, alike, differences
from bringup.core.facts import Facts
from bringup.core.reading import Absent, Known, Reading, Unknown
from bringup.probes.gpu import Gpu, Gpus
from bringup.probes.hca import Hca, InfiniBand, Purpose
from bringup.probes.identity import Identity
from bringup.probes.kernel import Modules
from bringup.probes.memory import Memory
from bringup.probes.phrases import IGNORED, PHRASES

ZERO, ONE = (Gpu(i, "NVIDIA B300", bus_id=f"0000:1{i}:00.0", temperature_c=30) for i in (0, 1))
GPUS = Gpus("580.95.05", "13.0", (ZERO, ONE))
PORT = Hca("mlx5_4", Purpose.COMPUTE, state="ACTIVE", firmware="28.43.1014", bus_id="0000:18:00.0")
NICS = InfiniBand((PORT,))


def words(old: object, new: object) -> list[str]:
    facts = [
        Facts({Gpus if isinstance(v, Absent | Unknown) else type(v): v if isinstance(v, Absent | Unknown) else Known(v)})
        for v in (old, new)
    ]  # fmt: skip
    found = differences(*facts, phrases=PHRASES, volatile={Memory}, ignored=IGNORED)
    return [str(change) for change in found]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (GPUS, replace(GPUS, driver="610.43.02"), ["the GPU driver went from 580.95.05 to 610.43.02"]),
        (GPUS, replace(GPUS, gpus=(ZERO,)), ["GPU 0000:11:00.0 is gone"]),
        (replace(GPUS, gpus=(ZERO,)), GPUS, ["GPU 0000:11:00.0 is new"]),
        (GPUS, replace(GPUS, gpus=(replace(ZERO, temperature_c=71), ONE)), []),
        (GPUS, replace(GPUS, gpus=(ONE, ZERO)), []),
        (GPUS, replace(GPUS, gpus=(replace(ZERO, fabric_health={"bandwidth": "Full"}), ONE)),
         ["Gpus.gpus[0000:10:00.0].fabric_health[bandwidth]: nothing → Full"]),
        (NICS, InfiniBand((replace(PORT, state="DOWN"),)), ["port mlx5_4 went down: ACTIVE → DOWN"]),
        (InfiniBand((replace(PORT, state="INIT"),)), NICS, ["port mlx5_4 came up (was INIT)"]),
        (NICS, InfiniBand((replace(PORT, firmware="28.44"),)),
         ["firmware of mlx5_4 went from 28.43.1014 to 28.44"]),
        (Modules(("a", "b", "ib_umad")), Modules(("a", "b", "c")),
         ["loaded of modules: ib_umad gone, c new"]),
        (GPUS, Absent("no GPU"), ["gpus: not there any more"]),
        (GPUS, Unknown("timed out"), ["gpus: cannot be read any more (timed out)"]),
        (Unknown("timed out"), GPUS, ["gpus: can be read again"]),
        (Unknown("timed out"), Unknown("no tool"), []),
        (Memory(10, 5), Memory(10, 4), []),
    ],
)  # fmt: skip
def test_a_change_is_told_in_words(old: object, new: object, said: list[str]) -> None:
    assert words(old, new) == said


def test_a_fact_that_was_not_asked_for_before_is_no_change() -> None:
    known: Reading[Identity] = Known(Identity("h"))
    assert differences(Facts(), Facts({Identity: known})) == ()


def test_a_path_without_words_is_told_as_it_is() -> None:
    assert str(Change("Identity.os_version", "22.04", "24.04")) == (
        "Identity.os_version: 22.04 → 24.04"
    )


def test_the_same_change_of_many_items_is_one_group() -> None:
    changes = [Change(f"Gpus.gpus[{i}].mig", "False", "True") for i in range(8)]
    groups = alike([*changes, Change("Gpus.driver", "1", "2")])
    assert [len(group) for group in groups] == [8, 1]
