"""Copies of weights between real OpenSSH hosts, broken in every way they break."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bringup.flow.weights import CopyWish, Place, plan_sync
from bringup.flow.weights_errand import Terms
from tests.fleet.fixtures import MakeFleet
from tests.fleet.yard import Yard

from .hands import PATH, hall, left, put, sums
from .models import model

pytestmark = [pytest.mark.root, pytest.mark.slow]


def test_hosts_get_all_from_another_host_and_hand_it_on(
    fleet: MakeFleet, yard: Yard, tmp_path: Path
) -> None:
    source, *others = fleet(4)
    put(source, model(tmp_path / "K3", shards=6, kib=512))
    with hall(yard, [source, *others], tmp_path) as one:
        plan, done = one.sync(source, others)
        assert {name: ended.error for name, ended in done.items()} == dict.fromkeys(
            [h.name for h in others]
        )
        again, nothing = one.sync(source, others)
        traffic = one.fleet.traffic()
    assert plan.plans[others[0].name].is_change
    assert not any(row.is_change for row in again.plans.values())
    assert nothing == {}
    assert all(sums(host) == sums(source) for host in others)
    assert all(traffic[host.name].connections == 1 for host in others)
    givers = {name for ended in done.values() for name in ended.by}
    assert givers > {source.name}
    assert all(left(host) == "" for host in [source, *others])


def test_check_writes_nothing(fleet: MakeFleet, yard: Yard, tmp_path: Path) -> None:
    source, other = fleet(2)
    put(source, model(tmp_path / "K3"))
    before = other.tree_digest("srv", "dev/shm", "etc")
    with hall(yard, [source, other], tmp_path) as one:
        plan = plan_sync(one.tools, CopyWish((one.place(other),), one.place(source)))
        assert plan.plans[other.name].bytes > 0
        assert plan.seconds > 0
    assert other.tree_digest("srv", "dev/shm", "etc") == before


def test_only_the_wrong_shard_comes_anew(fleet: MakeFleet, yard: Yard, tmp_path: Path) -> None:
    source, other = fleet(2)
    folder = model(tmp_path / "K3", shards=4, kib=256)
    for host in (source, other):
        put(host, folder)
    shard = "model-00003-of-00004.safetensors"
    other.exec("truncate", "-s", "1000", f"{PATH}/{shard}")
    other.exec("sh", "-c", f"echo ours >{PATH}/NOTES.txt")
    with hall(yard, [source, other], tmp_path) as one:
        plan, done = one.sync(source, [other])
    assert [f.name for f, _ in plan.plans[other.name].difference.wrong] == [shard]
    assert done[other.name].sent == (folder / shard).stat().st_size
    assert other.text("cat", f"{PATH}/NOTES.txt") == "ours\n"
    assert sums(source) in sums(other).replace(
        next(line for line in sums(other).splitlines(keepends=True) if "NOTES" in line), ""
    )


def test_carried_through_the_controller_where_hosts_do_not_reach_each_other(
    fleet: MakeFleet, yard: Yard, tmp_path: Path
) -> None:
    source, other = fleet(2)
    put(source, model(tmp_path / "K3", kib=512))
    source.exec("iptables", "-A", "INPUT", "-s", other.address, "-j", "REJECT")
    with hall(yard, [source, other], tmp_path) as one:
        _, done = one.sync(source, [other])
        assert "through this controller then" in one.told()
    assert done[other.name].error is None
    assert sums(other) == sums(source)


def test_a_rate_is_kept(fleet: MakeFleet, yard: Yard, tmp_path: Path) -> None:
    source, other = fleet(2)
    put(source, model(tmp_path / "K3", shards=2, kib=2048))
    with hall(yard, [source, other], tmp_path) as one:
        _, done = one.sync(source, [other], terms=Terms(streams=2, rate=1_000_000))
    assert done[other.name].error is None
    assert done[other.name].seconds > 3
    assert sums(other) == sums(source)


def test_what_start_up_files_print_does_not_get_into_weights(
    fleet: MakeFleet, yard: Yard, tmp_path: Path
) -> None:
    source, other = fleet(2)
    put(source, model(tmp_path / "K3"))
    source.exec("usermod", "-s", "/bin/bash", "root")
    source.exec("sh", "-c", "echo 'echo welcome to the cluster' >/root/.bashrc")
    with hall(yard, [source, other], tmp_path) as one:
        _, done = one.sync(source, [other])
    assert done[other.name].error is None
    assert sums(other) == sums(source)


def test_a_host_is_reached_by_name_where_the_inventory_says_so(
    fleet: MakeFleet, yard: Yard, tmp_path: Path
) -> None:
    source, other = fleet(2)
    put(source, model(tmp_path / "K3"))
    for host in (source, other):
        host.exec("sh", "-c", f"echo '{source.address} fast-1' >>/etc/hosts")
    with hall(yard, [source, other], tmp_path) as one:
        place = one.place(source)
        named = Place(replace(place.host, advertise="fast-1"), place.path, place.remote)
        _, done = one.sync(named, [other])
        assert "through this controller" not in one.told()
    assert done[other.name].error is None
    assert sums(other) == sums(source)
