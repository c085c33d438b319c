"""Up, down and status bring the practice fleet to what is described, whatever stood there."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from bringup.core.errors import InventoryError, ToolError, UsageError
from bringup.edge import inventory
from bringup.lab import fleet
from bringup.lab.describe import describe, names
from bringup.lab.hardware import Hardware, address
from bringup.lab.inventory import DEPLOYMENTS
from bringup.report.lab import lab_view

from .conftest import PATIENCE_S, Ssh, is_alive, until
from .layouts import HERE

PLAIN = ("plain-01",)


def plain(*wanted: str) -> tuple[Hardware, ...]:
    return describe(wanted or PLAIN, folder=HERE / "hosts")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A place for a fleet; nothing runs there afterwards."""
    yield tmp_path / ".lab"
    fleet.down(tmp_path / ".lab")


def test_a_second_up_changes_nothing(folder: Path) -> None:
    first = fleet.up(folder, descriptions=plain())
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*.yml")}
    made = fleet.digest(folder, "plain-01")
    said: list[str] = []
    assert fleet.up(folder, descriptions=plain(), on_line=said.append) == first
    assert fleet.digest(folder, "plain-01") == made
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*.yml")} == before
    assert said == []


def test_up_keeps_what_operators_wrote(folder: Path) -> None:
    at = fleet.up(folder, descriptions=plain()).hosts[0].root
    (at / "opt/serve.sh").write_text("mine\n")
    fleet.up(folder, descriptions=plain())
    assert (at / "opt/serve.sh").read_text() == "mine\n"


def test_a_fresh_host_holds_nothing_of_before(folder: Path) -> None:
    at = fleet.up(folder, descriptions=plain()).hosts[0].root
    (at / "opt/serve.sh").write_text("mine\n")
    fleet.up(folder, descriptions=plain(), fresh=True)
    assert not (at / "opt/serve.sh").exists()


def test_what_was_damaged_is_made_whole(folder: Path) -> None:
    at = fleet.up(folder, descriptions=plain()).hosts[0].root
    whole = fleet.digest(folder, "plain-01")
    (at / "usr/bin/uname").unlink()
    (at / "etc/os-release").write_text("nonsense")
    (folder / "hosts/plain-01/described.json").write_text('{"paths": [')
    fleet.up(folder, descriptions=plain())
    assert fleet.digest(folder, "plain-01") == whole


def test_a_changed_description_is_brought_about(tmp_path: Path, folder: Path) -> None:
    text = (HERE / "hosts/plain-01.yml").read_text()
    (tmp_path / "plain-01.yml").write_text(text + "units: {chrony: {description: NTP}}\n")
    at = fleet.up(folder, descriptions=describe(PLAIN, folder=tmp_path)).hosts[0].root
    assert (at / "usr/bin/systemctl").exists()
    fleet.up(folder, descriptions=plain())
    assert not (at / "usr/bin/systemctl").exists()
    assert not (at / "usr/lib/lab/systemctl").exists()


def test_a_killed_server_comes_back_on_the_same_ports(folder: Path) -> None:
    first = fleet.up(folder, descriptions=plain())
    assert first.pid
    os.kill(first.pid, signal.SIGKILL)
    until(lambda: not fleet.status(folder).is_up, "the server is gone")
    again = fleet.up(folder, descriptions=plain())
    assert again.pid != first.pid
    assert again.hosts == first.hosts
    assert Ssh(folder)("plain-01", "echo back").stdout == b"back\n"


def test_a_port_that_was_taken_meanwhile_is_given_up(folder: Path) -> None:
    port = fleet.up(folder, descriptions=plain()).hosts[0].port
    fleet.down(folder)
    with socket.create_server(("127.0.0.1", port)):
        again = fleet.up(folder, descriptions=plain())
        assert again.hosts[0].port != port
        assert Ssh(folder)("plain-01", "echo elsewhere").stdout == b"elsewhere\n"


def test_a_server_of_older_code_is_replaced(folder: Path) -> None:
    first = fleet.up(folder, descriptions=plain())
    orders = json.loads((folder / "fleet.json").read_text())
    (folder / "fleet.json").write_text(json.dumps(orders | {"code": "older"}))
    again = fleet.up(folder, descriptions=plain())
    assert again.pid != first.pid
    assert again.hosts == first.hosts


def test_a_host_more_keeps_the_ports_of_the_others(folder: Path) -> None:
    first = fleet.up(folder, descriptions=plain())
    more = fleet.up(folder, descriptions=plain("plain-01", "slow-01"))
    assert more.hosts[0] == first.hosts[0]
    assert Ssh(folder)("plain-01", "true").returncode == 0


def test_a_stale_process_number_is_no_server(folder: Path) -> None:
    fleet.up(folder, descriptions=plain())
    fleet.down(folder)
    ports = json.loads((folder / "server.json").read_text())["ports"]
    (folder / "server.json").write_text(json.dumps({"pid": os.getpid(), "ports": ports}))
    assert not fleet.status(folder).is_up


def test_down_ends_the_server_and_all_that_it_runs(folder: Path) -> None:
    pid = fleet.up(folder, descriptions=plain()).pid
    assert pid
    left = Ssh(folder)("plain-01", "sleep 600 >/dev/null 2>&1 </dev/null & echo $!").stdout
    fleet.down(folder)
    until(lambda: not is_alive(int(left)) and not is_alive(pid), "all processes end")


def test_down_where_nothing_is_up_is_no_error(folder: Path) -> None:
    assert not fleet.down(folder).is_up


def test_remove_takes_the_fleet_away(folder: Path) -> None:
    fleet.up(folder, descriptions=plain())
    fleet.down(folder, remove=True)
    assert not folder.exists()


def test_remove_refuses_a_folder_that_holds_no_fleet(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("x")
    with pytest.raises(ToolError, match="holds no practice fleet"):
        fleet.down(tmp_path, remove=True)
    assert (tmp_path / "precious").exists()


def test_two_ups_at_once_have_one_server(folder: Path) -> None:
    found: list[fleet.LabStatus] = []
    threads = [
        threading.Thread(target=lambda: found.append(fleet.up(folder, descriptions=plain())))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[0] == found[1]


START = """
import pathlib, sys
from bringup.lab import fleet
fleet.up(pathlib.Path(sys.argv[1]), ("b200-01",))
"""


def test_the_server_outlives_the_process_that_started_it(folder: Path) -> None:
    subprocess.run([sys.executable, "-c", START, str(folder)], check=True, timeout=PATIENCE_S)
    assert Ssh(folder)("b200-01", "echo here").stdout == b"here\n"


def test_the_server_ends_when_its_folder_is_gone(folder: Path) -> None:
    pid = fleet.up(folder, descriptions=plain()).pid
    assert pid
    shutil.rmtree(folder)
    until(lambda: not is_alive(pid), "the server of a removed folder ends")


def test_the_inventory_is_one_that_bringup_reads(lab: fleet.LabStatus) -> None:
    fleet.up(lab.folder)
    found = inventory.load(lab.inventory)
    host = found.hosts["b300-04"]
    assert (host.kind, host.gpu_count, host.groups) == ("b300", 8, ("b300",))
    assert host.root == str(next(h.root for h in lab.hosts if h.name == "b300-04"))
    assert set(found.deployments) == {"qwen-1p1d"}


def test_the_pair_of_the_report_is_deployed_on_both_hosts() -> None:
    text = (DEPLOYMENTS / "kimi-k3.yml").read_text()
    assert "b300-04" in text
    assert "b300-07" in text


def test_patterns_make_more_hosts_of_a_family() -> None:
    made = describe(("b300-[20-22]",))
    assert [hardware.name for hardware in made] == ["b300-20", "b300-21", "b300-22"]
    assert {hardware.kind for hardware in made} == {"b300"}
    assert len({address(hardware.name) for hardware in made}) == 3


def test_a_host_like_nothing_described_is_refused_with_near_names() -> None:
    with pytest.raises(UsageError, match="b30O-04") as caught:
        describe(("b30O-04",))
    assert "b300-04" in caught.value.remedy


def test_a_pattern_that_does_not_unfold_is_refused() -> None:
    with pytest.raises(UsageError, match=r"b300-\[01"):
        describe(("b300-[01",))


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ToolError, match=r"file/\.lab: Not a directory"):
        fleet.up(tmp_path / "file/.lab", descriptions=plain())


def test_a_server_that_does_not_start_says_why(folder: Path) -> None:
    fleet.up(folder, descriptions=plain())
    fleet.down(folder)
    (folder / "keys/host-plain-01").write_text("no key")
    with pytest.raises(ToolError, match="cannot start") as caught:
        fleet.up(folder, descriptions=plain())
    assert "Invalid private key" in caught.value.said


def test_a_description_with_an_unknown_key_is_refused(tmp_path: Path) -> None:
    (tmp_path / "odd-01.yml").write_text("like: plain-01\nmemroy_gib: 3\n")
    (tmp_path / "plain-01.yml").write_text((HERE / "hosts/plain-01.yml").read_text())
    with pytest.raises(InventoryError, match="memroy_gib"):
        describe(("odd-01",), folder=tmp_path)


def test_every_shipped_description_fits() -> None:
    assert {hardware.name for hardware in describe()} == set(names())


def test_a_digest_skips_the_holes_of_the_weights(lab: fleet.LabStatus) -> None:
    at = next(host.root for host in lab.hosts if host.name == "b300-04")
    shards = list((at / "raid/models/Kimi-K3").glob("*.safetensors"))
    assert sum(shard.stat().st_size for shard in shards) > 1e12
    before = fleet.digest(lab.folder, "b300-04")
    assert fleet.digest(lab.folder, "b300-04") == before


def test_without_the_extra_up_names_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet, "find_spec", lambda _: None)
    with pytest.raises(ToolError, match=r"bringup\[lab\]"):
        fleet.up(folder)


def test_without_the_extra_the_server_names_it() -> None:
    code = "import sys; sys.modules['asyncssh'] = None; import bringup.lab.server"
    done = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, timeout=PATIENCE_S
    )
    assert done.returncode == 1
    assert b"bringup[lab]" in done.stderr


def test_a_smaller_fleet_keeps_no_deployment_of_hosts_that_are_gone(folder: Path) -> None:
    fleet.up(folder, ("b300-04", "b300-07"))
    said: list[str] = []
    smaller = fleet.up(folder, ("b300-04",), on_line=said.append)
    assert inventory.load(smaller.inventory).deployments == {}
    assert any("no longer serving b300-07" in line for line in said)


def test_commands_to_try_name_hosts_that_are_up(tmp_path: Path) -> None:
    host = fleet.LabHost("b300-13", "sick", "127.0.0.1", 22, tmp_path)
    console = Console(width=200, file=StringIO())
    console.print(lab_view(fleet.LabStatus(tmp_path, 1, (host,))))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "probe --host b300-13" in shown
    assert "b200-01" not in shown
    assert "b300-04" not in shown


def test_a_lost_key_is_made_anew_and_served(folder: Path) -> None:
    fleet.up(folder, descriptions=plain())
    (folder / "keys/operator").unlink()
    fleet.up(folder, descriptions=plain())
    assert Ssh(folder)("plain-01", "echo in").stdout == b"in\n"


def test_a_damaged_record_hides_no_server(folder: Path) -> None:
    first = fleet.up(folder, descriptions=plain())
    (folder / "server.json").write_text("x\n")
    assert fleet.status(folder) == first
    again = fleet.up(folder, descriptions=plain())
    assert again.hosts == first.hosts
    (folder / "server.json").write_text("x\n")
    assert not fleet.down(folder).is_up
    assert again.pid
    assert not is_alive(again.pid)


def test_a_host_described_since_joins_a_fleet_that_is_up(
    folder: Path,
) -> None:
    fleet.up(folder, ("b200-01",))
    said = json.loads((folder / "fleet.json").read_text())
    known = [name for name in said["described"] if name != "b300-13"]
    (folder / "fleet.json").write_text(json.dumps(said | {"described": known}))
    assert [host.name for host in fleet.up(folder).hosts] == ["b200-01", "b300-13"]


def test_an_unknown_fault_is_refused(tmp_path: Path) -> None:
    text = (HERE / "hosts/plain-01.yml").read_text()
    (tmp_path / "odd-01.yml").write_text(f"{text}faults: {{hangs: [nvidia-smi]}}\n")
    with pytest.raises(InventoryError, match="faults/hangs"):
        describe(("odd-01",), folder=tmp_path)
