"""What hosts of one deployment must share."""

# ruff: noqa: E501 - one row a situation

from __future__ import annotations

import pytest

from bringup.core.facts import Facts
from bringup.core.host import Host, Login
from bringup.core.reading import Absent, Known
from bringup.core.rules import Finding, Joint, World, judge
from bringup.probes.clock import Clock
from bringup.probes.gpu import Gpu, Gpus
from bringup.probes.hca import InfiniBand
from bringup.probes.model import ModelFolder
from bringup.probes.network import Reach
from bringup.probes.stored_image import StoredImage
from bringup.rules.pairs import ROWS

from .situations import PAIR, nic


def said(identity: str, one: object, other: object) -> Finding:
    """Return what a row says of two hosts with one fact each; None: nobody read it."""
    worlds = {}
    for name, value in (("b300-04", one), ("b300-07", other)):
        facts = Facts({} if value is None else {type(value): Known(value, "seen")})
        worlds[name] = World(Host(name, Login(name)), facts)
    (found,) = judge([row for row in ROWS if row.id == identity], Joint(PAIR, worlds))
    return found


def gpus(driver: str, name: str = "NVIDIA B300") -> Gpus:
    return Gpus(driver, "13.0", (Gpu(0, name),))


def firmware(version: str) -> InfiniBand:
    return InfiniBand((nic("mlx5_0", firmware=version),))


def image(letter: str, *digests: str) -> StoredImage:
    return StoredImage("sha256:" + letter * 64, digests=digests)


def stored(letter: str, *layers: str, manifest: bool = False, **labels: str) -> StoredImage:
    """An image in a classic store, or in containerd's, where the ID is the manifest's digest."""
    identity = "sha256:" + letter * 64
    digests = (f"k3@{identity}",) if manifest else ()
    return StoredImage(identity, digests=digests, layers=layers, labels=labels)


FULL = ModelFolder("/m", files={"a.safetensors": 10}, sums={"config.json": "1"})
SHORT = ModelFolder("/m", files={"a.safetensors": 9}, sums={"config.json": "1"})
ELSEWHERE = ModelFolder("/other", files={"a.safetensors": 10}, sums={"config.json": "1"})

ALL = [
    ("pair-driver", gpus("580.95.05"), gpus("580.126.20"), "pass ok"),
    ("pair-driver", gpus("580.95.05"), gpus("610.43.02"), "warn warn"),
    ("pair-driver", gpus("580.95.05"), None, "unknown note"),
    ("pair-gpus", gpus("580.1"), gpus("580.1", "NVIDIA B200"), "fail warn"),
    ("pair-nic-firmware", firmware("28.1"), firmware("28.2"), "warn note"),
    ("pair-model", FULL, ELSEWHERE, "pass ok"),
    ("pair-model", FULL, SHORT, "fail block"),
    ("pair-model", FULL, None, "unknown note"),
    ("pair-image", image("a"), image("a"), "pass ok"),
    ("pair-image", image("a"), image("b"), "fail block"),
    ("pair-image", image("a"), image("b", "k3@sha256:c"), "fail block"),
    ("pair-image", image("a", "r/k3@sha256:c"), image("b", "s/k3@sha256:c"), "pass ok"),
    ("pair-image", image("a"), None, "unknown note"),
    ("pair-image", stored("a", "x"), stored("b", "x", manifest=True), "pass ok"),
    ("pair-image", stored("a", "x"), stored("b", "y", manifest=True), "fail block"),
    ("pair-image", stored("a", "x"), stored("b", "x", manifest=True, gate="2"), "fail block"),
    ("pair-image", stored("a"), stored("b", "x", manifest=True), "unknown note"),
    ("pair-image", stored("a", "x"), stored("b", "x"), "fail block"),
    ("pair-ports", Reach({"b:8998": "open"}), Reach({"a:8998": "refused"}), "pass ok"),
    ("pair-ports", Reach({"b:8998": "timeout"}), Reach({"a:8998": "open"}), "fail block"),
    ("pair-ports", Reach({"b:8998": "open"}), None, "unknown note"),
    ("pair-ports", None, None, "unknown note"),
    ("pair-clocks", Clock(offset_s=0.01), Clock(offset_s=0.02), "pass ok"),
    ("pair-clocks", Clock(offset_s=0.0), Clock(offset_s=0.5), "warn warn"),
    ("pair-clocks", Clock(offset_s=0.0), Clock(offset_s=9.0), "fail warn"),
    ("pair-clocks", Clock(offset_s=0.0, uncertain_s=0.3), Clock(offset_s=0.4, uncertain_s=0.3), "pass ok"),
    ("pair-clocks", Clock(), Clock(offset_s=0.0), "unknown note"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("identity", "one", "other", "word"), ALL, ids=[f"{a[0]} {a[3]}" for a in ALL]
)
def test_two_hosts_are_compared(identity: str, one: object, other: object, word: str) -> None:
    found = said(identity, one, other)
    assert f"{found.status.value} {found.level.value}" == word, found


def test_a_lone_host_has_nothing_to_differ_from() -> None:
    joint = Joint(PAIR, {"a": World(Host("a", Login("a")), Facts({Gpus: Absent("none")}))})
    assert {f.status.value for f in judge(ROWS, joint)} == {"skip"}
