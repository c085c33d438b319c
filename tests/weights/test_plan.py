"""Plans of copies: room, shares, time. Pure."""

from __future__ import annotations

import pytest

from bringup.weights.compare import Difference
from bringup.weights.folder import File, Folder, Ground, Seat
from bringup.weights.plan import (
    HostPlan,
    Way,
    duration,
    host_plan,
    on_shares,
    order_for,
    seconds_for,
    size,
)

GIB = 1 << 30
FILES = tuple(File(f"model-{n}.safetensors", GIB, sample="s") for n in range(4))


def planned(ground: Ground, *, host: str = "h1", parts: dict[str, int] | None = None) -> HostPlan:
    folder = Folder("/m", Seat.ABSENT, parts=parts or {}, ground=ground)
    return host_plan(host, folder, Difference(FILES), Way.DIRECT)


@pytest.mark.parametrize(
    ("ground", "says"),
    [
        (Ground(100 * GIB, 40 * GIB), ""),
        (Ground(100 * GIB, 4 * GIB), "its disk has 4.3 GB free, 5.4 GB are needed"),
        (Ground(100 * GIB, None), "how much room its disk has is not known"),
        (Ground(100 * GIB, 40 * GIB, may_write=False), "the login may not write to /m"),
    ],
)
def test_room_is_looked_at_before_anything_is_copied(ground: Ground, says: str) -> None:
    assert planned(ground).trouble == says


def test_unfinished_parts_need_no_room_again() -> None:
    parts = {file.key: GIB - 1 for file in FILES[:3]}
    plan = planned(Ground(100 * GIB, 3 * GIB), parts=parts)
    assert plan.trouble == ""
    assert plan.bytes == GIB + 3


def test_one_host_alone_writes_a_share() -> None:
    nfs = Ground(100 * GIB, 40 * GIB, "nfs")
    found = on_shares({name: planned(nfs, host=name) for name in ("h1", "h2")})
    assert [plan.trouble for plan in found.values()] == [
        "", "it lies on a share (nfs) where h1 writes the same folder",
    ]  # fmt: skip
    local = Ground(100 * GIB, 40 * GIB, "ext2/ext3")
    two = on_shares({name: planned(local, host=name) for name in ("h1", "h2")})
    assert not any(plan.trouble for plan in two.values())


def test_many_hosts_take_twice_as_long_as_one() -> None:
    source = Folder("/m", ground=Ground(line_mb_s={"eth0": 1000.0}))
    plans = {f"h{n}": planned(Ground(100 * GIB, 40 * GIB), host=f"h{n}") for n in range(8)}
    one = seconds_for({"h0": plans["h0"]}, Way.DIRECT, source)
    assert one == pytest.approx(4 * GIB / 1e9)
    assert seconds_for(plans, Way.DIRECT, source) == pytest.approx(2 * one)
    assert seconds_for(plans, Way.DIRECT, source, limit_mb_s=10) == pytest.approx(200 * one)


def test_hosts_begin_at_different_files_and_leave_none_out() -> None:
    orders = [order_for(FILES, place, 4) for place in range(4)]
    assert len({order[0] for order in orders}) == 4
    assert all(sorted(o, key=lambda f: f.name) == list(FILES) for o in orders)


def test_sizes_and_times_are_told_as_people_say_them() -> None:
    assert [size(n) for n in (12, 1.5e6, 250e9, 1.5e12)] == ["12 B", "1.5 MB", "250 GB", "1.5 TB"]
    assert [duration(s) for s in (0.2, 75, 600, 7200)] == ["1 s", "75 s", "10 min", "2.0 h"]
