"""What breaks in the middle of a copy, and what the next try finds: real hosts, real breaks."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from bringup.core.errors import CommandFailed, Unreachable
from bringup.flow.weights_errand import Terms
from bringup.flow.weights_market import NoSource
from tests.fleet.fixtures import MakeFleet
from tests.fleet.yard import FleetHost, Yard

from .hands import PATH, hall, left, put, sums
from .models import model

pytestmark = [pytest.mark.root, pytest.mark.slow]

SLOW = Terms(streams=2, rate=5_000_000, reopens=4)
KIB = 12 * 1024
WHOLE = 2 * KIB * 1024
"""Two shards of 12 MiB at 5 MB/s: five seconds in which to break something."""


def source_of(fleet: MakeFleet, count: int, tmp_path: Path) -> list[FleetHost]:
    hosts = fleet(count)
    put(hosts[0], model(tmp_path / "K3", shards=2, kib=KIB))
    return hosts


def restart_sshd(host: FleetHost) -> None:
    host.kill_sshd()
    host.start_sshd()


def test_a_line_that_drops_at_a_third_goes_on_and_sends_nothing_twice(
    fleet: MakeFleet, yard: Yard, tmp_path: Path
) -> None:
    source, other = source_of(fleet, 2, tmp_path)
    with hall(yard, [source, other], tmp_path) as one:
        one.when(0.3, lambda: restart_sshd(other))
        _, done = one.sync(source, [other], terms=SLOW)
        assert "the line dropped" in one.told()
    ended = done[other.name]
    assert ended.error is None
    assert ended.sent < WHOLE + 5_000_000  # the small files, and what was in flight
    assert sums(other) == sums(source)
    assert left(other) == "" == left(source)


def test_a_source_whose_server_dies_is_opened_again(
    fleet: MakeFleet, yard: Yard, tmp_path: Path
) -> None:
    source, other = source_of(fleet, 2, tmp_path)
    with hall(yard, [source, other], tmp_path) as one:
        one.when(0.3, lambda: restart_sshd(source))
        _, done = one.sync(source, [other], terms=SLOW)
    assert done[other.name].error is None
    assert sums(other) == sums(source)


def test_a_source_that_is_gone_is_told_and_the_next_run_sends_the_rest(
    fleet: MakeFleet, yard: Yard, tmp_path: Path
) -> None:
    source, other, spare = source_of(fleet, 3, tmp_path)
    put(spare, tmp_path / "K3")
    with hall(yard, [source, other, spare], tmp_path) as one:
        one.when(0.4, source.power_off)
        _, done = one.sync(source, [other], terms=SLOW)
        ended = done[other.name]
        assert isinstance(ended.error, NoSource)
        assert "what arrived is kept" in ended.error.remedy
        plan, done = one.sync(spare, [other])
    assert plan.plans[other.name].parts_bytes > WHOLE // 4
    assert done[other.name].sent < WHOLE * 3 // 4
    assert sums(other) == sums(spare)


def test_another_host_that_has_it_takes_the_place_of_a_source_that_is_gone(
    fleet: MakeFleet, yard: Yard, tmp_path: Path
) -> None:
    source, other, spare = source_of(fleet, 3, tmp_path)
    put(spare, tmp_path / "K3")
    with hall(yard, [source, other, spare], tmp_path) as one:
        one.when(0.3, source.power_off)
        _, done = one.sync(source, [other, spare], terms=SLOW)
    assert done[other.name].error is None
    assert spare.name in done[other.name].by
    assert sums(other) == sums(spare)


def test_a_host_that_dies_midway_stops_itself_alone(
    fleet: MakeFleet, yard: Yard, tmp_path: Path
) -> None:
    source, other, dead = source_of(fleet, 3, tmp_path)
    terms = Terms(streams=2, rate=8_000_000, reopens=1)
    with hall(yard, [source, other, dead], tmp_path) as one:
        one.when(0.3, dead.power_off)
        _, done = one.sync(source, [other, dead], terms=terms)
    assert isinstance(done[dead.name].error, Unreachable)
    assert done[other.name].error is None
    assert sums(other) == sums(source)


def test_a_disk_that_fills_up_midway_is_told_and_the_next_run_goes_on(
    fleet: MakeFleet, yard: Yard, tmp_path: Path
) -> None:
    source, other = source_of(fleet, 2, tmp_path)
    other.exec("sh", "-c", "mkdir /disk && mount -t tmpfs -o size=40m disk /disk")
    with hall(yard, [source, other], tmp_path) as one:
        one.when(0.3, lambda: other.fill("/disk"))
        place = one.place(other, "/disk/K3")
        _, done = one.sync(source, [place], terms=SLOW)
        error = done[other.name].error
        assert isinstance(error, CommandFailed)
        assert "its disk is full" in error.message
        other.exec("rm", "/disk/.fill")
        plan, done = one.sync(source, [place])
    assert plan.plans[other.name].parts_bytes > 500_000
    assert done[other.name].error is None
    assert sums(other, "/disk/K3") == sums(source)


def test_a_disk_without_room_is_refused_before_anything_is_written(
    fleet: MakeFleet, yard: Yard, tmp_path: Path
) -> None:
    source, other = source_of(fleet, 2, tmp_path)
    with hall(yard, [source, other], tmp_path) as one:
        plan, done = one.sync(source, [one.place(other, "/small/K3")])
    assert "are needed" in plan.plans[other.name].trouble
    assert done == {}
    assert other.text("ls", "-A", "/small") == ""


def test_a_part_is_cut_back_to_what_was_synced_after_a_reboot(
    fleet: MakeFleet, yard: Yard, tmp_path: Path
) -> None:
    source, other = source_of(fleet, 2, tmp_path)
    with hall(yard, [source, other], tmp_path) as one:
        one.when(0.5, lambda: restart_sshd(source))
        one.sync(source, [other], terms=Terms(streams=1, rate=8_000_000))
        assert sums(other) == sums(source)
        shard = "model-00002-of-00002.safetensors"
        (key,) = [f.key for f in one.sync(source, [other])[0].files if f.name == shard]
        parts = f"{PATH}/.bringup-weights"
        other.exec(
            "sh", "-c",
            f"mkdir -p {parts}; cd {parts}; head -c 9000 ../{shard} >{key}.part; "
            f"head -c 90000 /dev/zero >>{key}.part; echo another-boot 9000 >{key}.at; "
            f"rm ../{shard}",
        )  # fmt: skip
        _, done = one.sync(source, [other])
    assert done[other.name].error is None
    assert sums(other) == sums(source)


def test_hashes_find_what_nothing_else_shows_and_fetch_it_alone(
    fleet: MakeFleet, yard: Yard, tmp_path: Path
) -> None:
    source, other = source_of(fleet, 2, tmp_path)
    put(other, tmp_path / "K3")
    shard = "model-00001-of-00002.safetensors"
    other.exec("sh", "-c", f"printf X | dd of={PATH}/{shard} bs=1 seek=700000 conv=notrunc")
    with hall(yard, [source, other], tmp_path) as one:
        blind, _ = one.sync(source, [other])
        assert not blind.plans[other.name].is_change
        plan, done = one.sync(source, [other], hashes=True)
    assert [f.name for f, _ in plan.plans[other.name].difference.wrong] == [shard]
    assert done[other.name].sent == (tmp_path / "K3" / shard).stat().st_size
    assert sums(other) == sums(source)


def test_a_target_that_cannot_be_read_whole_stops_itself_alone(
    fleet: MakeFleet, yard: Yard, tmp_path: Path
) -> None:
    source, bad, other = source_of(fleet, 3, tmp_path)
    put(bad, tmp_path / "K3")
    bad.exec("sh", "-c", "rm -f /usr/bin/sha256sum /bin/sha256sum")
    with hall(yard, [source, bad, other], tmp_path) as one:
        plan, done = one.sync(source, [bad, other], hashes=True)
    assert "cannot sum" in plan.errors[bad.name].message
    assert done[other.name].error is None
    assert sums(other) == sums(source)


def test_a_second_look_costs_one_connection_and_one_command(
    fleet: MakeFleet, yard: Yard, tmp_path: Path
) -> None:
    source, other = source_of(fleet, 2, tmp_path)
    put(other, tmp_path / "K3")
    with hall(yard, [source, other], tmp_path) as one:
        began = time.monotonic()
        plan, done = one.sync(source, [other])
        traffic = one.fleet.traffic()[other.name]
    assert done == {}
    assert not plan.plans[other.name].is_change
    assert (traffic.connections, traffic.commands) == (1, 1)
    assert time.monotonic() - began < 240
