"""Edits leave foreign text alone, show a diff, and have nothing to do the second time."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from bringup.core.errors import Blocked
from bringup.core.plan import difference
from bringup.core.steps import State, Step
from bringup.steps.command import merged
from bringup.steps.edit import docker_daemon, edited_file, json_keys, marked_block, mount_line
from bringup.steps.kernel import module_steps, sysctl_steps
from bringup.steps.mount import Mount, mount_steps

from .hands import plan, settle, states, write

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="new files are given to root")

LIMITS = "/etc/security/limits.conf"


def limits(text: str = "* - memlock unlimited") -> Step:
    return edited_file(LIMITS, marked_block("limits", text), title="edit limits")


@pytest.mark.parametrize(
    "old",
    ["", "* soft nofile 7\n", "no line feed at the end", "a\n\n\tb \n# bringup: begin other\n"],
)
def test_a_block_goes_in_and_out_and_leaves_foreign_lines(old: str) -> None:
    into, out = marked_block("x", "one\ntwo"), marked_block("x", "")
    new = into(old)
    assert new.startswith(old)
    assert "\none\ntwo\n" in f"\n{new}"
    assert into(new) == new
    assert out(new).rstrip("\n") == old.rstrip("\n")


def test_a_block_is_changed_in_its_place() -> None:
    old = marked_block("x", "one")("before\n") + "after\n"
    assert marked_block("x", "two")(old) == old.replace("one", "two")


@pytest.mark.parametrize(
    "old", ["# bringup: begin x\n", "# bringup: end x\n# bringup: begin x\n",
            "# bringup: begin x\n" * 2],
)  # fmt: skip
def test_a_mark_that_stands_alone_stops_the_edit(old: str) -> None:
    with pytest.raises(ValueError, match="marks"):
        marked_block("x", "one")(old)


def test_foreign_keys_of_daemon_json_survive_with_their_order() -> None:
    old = '{"debug": true, "log-opts": {"tag": "x"}, "dns": ["1.1.1.1"]}'
    new = json_keys({"log-opts": {"max-size": "100m"}})(old)
    assert list(json.loads(new)) == ["debug", "log-opts", "dns"]
    assert json.loads(new)["log-opts"] == {"tag": "x", "max-size": "100m"}


def test_daemon_json_that_says_it_already_keeps_its_bytes() -> None:
    old = '{ "log-opts":{"max-size":"100m"} }'
    assert json_keys({"log-opts": {"max-size": "100m"}})(old) == old


def test_a_byte_order_mark_that_docker_reads_over_stays() -> None:
    new = json_keys({"a": 1})('\ufeff{"debug": true}\n')
    assert new.startswith("\ufeff{")
    assert json.loads(new[1:]) == {"debug": True, "a": 1}


def test_a_key_that_stands_twice_stops_the_edit() -> None:
    with pytest.raises(ValueError, match="the key 'dns' stands in it twice"):
        json_keys({"a": 1})('{"dns": ["10.0.0.1"], "dns": ["10.0.0.2"]}')


@pytest.mark.parametrize("old", ["{", "[]", "3", "{'a': 1}", '{"a": 2} // by ann', '{"a": 2,}'])
def test_text_that_is_no_json_object_is_not_edited(old: str) -> None:
    with pytest.raises(ValueError, match="no JSON"):
        json_keys({"a": 1})(old)


def test_an_edit_shows_a_diff_keeps_mode_and_owner_and_is_done_once(tmp_path: Path) -> None:
    file = write(tmp_path, LIMITS, "* soft nofile 7\n")
    file.chmod(0o640)
    os.chown(file, 7, 8)
    (planned,) = plan([limits()], root=str(tmp_path))
    assert "+* - memlock unlimited\n" in difference(planned)
    assert "-* soft" not in difference(planned)
    assert states(settle([limits()], root=str(tmp_path))) == [State.SAME]
    assert file.read_text().startswith("* soft nofile 7\n")
    assert (file.stat().st_mode & 0o777, file.stat().st_uid) == (0o640, 7)


def test_an_absent_file_is_made_by_its_edit(tmp_path: Path) -> None:
    step = docker_daemon({"log-opts": {"max-size": "1m"}})
    assert states(settle([step], root=str(tmp_path))) == [State.SAME]
    made = tmp_path / "etc/docker/daemon.json"
    assert json.loads(made.read_text()) == {"log-opts": {"max-size": "1m"}}


@pytest.mark.parametrize("kind", ["link", "folder", "binary"])
def test_what_is_no_plain_text_file_is_blocked_before_any_change(tmp_path: Path, kind: str) -> None:
    place = tmp_path / LIMITS.strip("/")
    place.parent.mkdir(parents=True)
    match kind:
        case "link":
            place.symlink_to("/etc/hosts")
        case "folder":
            place.mkdir()
        case "binary":
            place.write_bytes(b"\xff\x00\n")
    with pytest.raises(Blocked, match="cannot edit limits"):
        plan([limits()], root=str(tmp_path))


def test_two_edits_of_one_file_both_take_effect(tmp_path: Path) -> None:
    steps = merged([docker_daemon({"a": 1}), docker_daemon({"b": {"c": 2}})])
    assert len(steps) == 1
    settle(steps, root=str(tmp_path))
    assert json.loads((tmp_path / "etc/docker/daemon.json").read_text()) == {"a": 1, "b": {"c": 2}}


def test_a_loaded_module_is_seen_and_kept_for_the_next_start(tmp_path: Path) -> None:
    (tmp_path / "sys/module/ib_umad").mkdir(parents=True)
    at_start, now = plan(module_steps("ib_umad"), root=str(tmp_path))
    assert (at_start.is_change, now.is_change) == (True, False)


def test_a_sysctl_is_read_as_the_kernel_tells_it(tmp_path: Path) -> None:
    write(tmp_path, "/proc/sys/kernel/numa_balancing", "1\n")
    _, now = plan(sysctl_steps("kernel.numa_balancing", "0"), root=str(tmp_path))
    assert (now.observation.found, now.is_change) == ("1", True)
    write(tmp_path, "/proc/sys/kernel/numa_balancing", "0\n")
    assert states(plan(sysctl_steps("kernel.numa_balancing", "0"), root=str(tmp_path)))[1] is (
        State.SAME
    )


def test_a_mount_is_told_by_source_and_kind(tmp_path: Path) -> None:
    write(tmp_path, "/proc/self/mounts", "nas:/models /models nfs4 rw 0 0\n")
    steps = mount_steps(Mount("nas:/models", "/models", "nfs4"))
    assert plan(steps, root=str(tmp_path))[2].observation.state is State.SAME
    other = mount_steps(Mount("nas:/others", "/models", "nfs4"))
    assert plan(other, root=str(tmp_path))[2].observation.found == "mounted nas:/models nfs4"


@pytest.mark.parametrize("theirs", ["tmpfs /models tmpfs size=1g 0 0", "\tnas:/x  /models/ nfs"])
def test_a_place_that_another_line_of_fstab_mounts_is_left_to_its_owner(theirs: str) -> None:
    with pytest.raises(ValueError, match="a line mounts /models already, and would win over ours"):
        mount_line("/models", "nas:/m /models nfs4 defaults 0 0")(f"# table\n{theirs}\n")


def test_odd_lines_of_fstab_stay_and_ours_is_changed_in_its_place() -> None:
    old = "#tmpfs /models tmpfs\n\n/dev/sda\tnone swap sw\r\nhalf\nUUID=1 /models2 ext4"
    first = mount_line("/models", "nas:/m /models nfs4 ro 0 0")(old)
    assert first.startswith(old)
    second = mount_line("/models", "nas:/m /models nfs4 rw 0 0")(first)
    assert second == first.replace("nfs4 ro", "nfs4 rw")


def test_a_mount_with_a_blank_in_it_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot mount"):
        Mount("nas:/a b", "/models", "nfs4")
