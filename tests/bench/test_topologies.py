"""bench.topologies on a host with a real docker: start, fail, measure, stop, break off, go on."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bringup.flow.bench_host import in_use
from bringup.flow.open import read_inventory, tools_for
from bringup.options.hosts import Workspace
from tests.dynamo.processes import until
from tests.fleet.yard import Yard

from .ground import NAME, Ground, ground

pytestmark = [pytest.mark.root, pytest.mark.slow, pytest.mark.xdist_group("bench-docker")]

TWO = ("--topology", "dp", "--topology", "tp")
NO_NVCC = "RuntimeError: Could not find nvcc and default cuda_home='/usr/local/cuda' doesn't exist"


@pytest.fixture(scope="module")
def shared(yard: Yard, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    with ground(tmp_path_factory.mktemp("bench"), yard) as made:
        yield made


@pytest.fixture
def host(shared: Ground) -> Ground:
    shared.clear()
    shared.write()
    return shared


def rows(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return rows by their topology's short name, as the deployment is called."""
    short = {"copies": "dp", "tensor parallel": "tp", "prefill and decode apart": "1p1d"}
    return {short[row["topology"]]: row for row in document["rows"]}


def said(done: subprocess.CompletedProcess[str]) -> str:
    return done.stdout + done.stderr


def test_two_are_measured_and_the_one_that_dies_is_a_row_with_its_cause(host: Ground) -> None:
    host.behave(dp={"gap_ms": 2}, tp={"say": NO_NVCC, "exit": 1}, **{"1p1d": {"gap_ms": 100}})
    found = host.document("--traffic", "400x10")
    by_name = rows(found)
    assert found["exit"] == 1
    assert {name: row["state"] for name, row in by_name.items()} == {
        "dp": "measured", "tp": "failed", "1p1d": "measured",
    }  # fmt: skip
    assert by_name["tp"]["cause"] == "flashinfer-no-nvcc"
    assert by_name["tp"]["evidence"] == NO_NVCC
    assert NO_NVCC in Path(by_name["tp"]["log"]).read_text()
    copies, pair = by_name["dp"]["results"], by_name["1p1d"]["results"]
    assert [one["output_tokens"] for one in copies] == [160, 40]
    assert pair[0]["tpot_ms"] >= 100
    assert pair[0]["tpot_ms"] > copies[0]["tpot_ms"], "whose gaps are 2 ms and a busy machine's own"
    assert copies[0]["output_tokens_s"] > pair[0]["output_tokens_s"]
    assert "--data-parallel-size 2" in by_name["dp"]["commands"][0]
    assert f"docker exec {NAME}-bench-dp-serve vllm bench serve" in copies[0]["command"]
    assert host.names() == []
    page = Path(found["page"]).read_text()
    assert NO_NVCC.split(" ", 1)[0] in page
    assert page.count("<svg") == 5
    assert "http" not in page.partition("<style>")[2].partition("</style>")[0]


def test_check_mode_shows_the_plan_and_starts_nothing(host: Ground) -> None:
    done = host.run("--check")
    assert done.returncode == 5, said(done)
    assert "--data-parallel-size 2" in done.stdout
    assert "--tensor-parallel-size 2" in done.stdout
    assert "vllm-router --vllm-pd-disaggregation" in done.stdout
    assert host.names() == []
    assert "bringup" not in host.host.text("ls", "/opt")


def test_a_run_that_is_broken_off_keeps_its_rows_and_the_next_goes_on(host: Ground) -> None:
    host.behave(tp={"load_s": 600})
    begun = host.begin(*TWO)
    host.waits_for(begun, "tp")
    assert host.interrupt(begun) == 130, begun.log
    assert host.names() == []
    (file,) = host.folder.glob("state/bench/toy/*.json")
    kept = json.loads(file.read_text())
    host.behave()
    found = host.document(*TWO)
    assert found["exit"] == 0
    assert [row["state"] for row in found["rows"]] == ["measured"] * 2
    assert found["at"] == kept["at"]
    assert rows(found)["dp"] == kept["rows"][0]


def test_what_a_killed_run_left_is_stopped_by_the_next(host: Ground) -> None:
    host.behave(dp={"load_s": 600})
    begun = host.begin()
    host.waits_for(begun, "dp")
    begun.kill()
    assert host.names() == [f"{NAME}-bench-dp-serve"]
    host.behave()
    found = host.document("--topology", "tp")
    assert found["exit"] == 0
    assert host.names() == []


def test_a_foreign_process_on_a_gpu_refuses_all_and_is_named(host: Ground) -> None:
    host.host.exec("touch", "/model/foreign")
    done = host.run()
    assert done.returncode == 4, said(done)
    assert "/opt/train/run.py (PID 4242)" in done.stdout
    assert host.names() == []


def test_a_foreign_container_is_left_alone_and_its_row_refused(host: Ground) -> None:
    name = f"{NAME}-bench-tp-serve"
    host.host.exec("docker", "run", "-d", "--name", name, host.image, "/bin/sleep", "600")
    found = host.document("--topology", "tp")
    assert found["exit"] == 4
    assert "is not ours" in rows(found)["tp"]["why"]
    assert host.names() == [name]


def test_an_image_that_is_not_there_is_refused_with_what_to_do(host: Ground) -> None:
    host.host.exec("docker", "tag", host.image, "kept:1")
    host.host.exec("docker", "rmi", "vllm-standin:1")
    try:
        found = host.document("--topology", "dp")
    finally:
        host.host.exec("docker", "tag", host.image, "vllm-standin:1")
    assert found["exit"] == 4
    assert "is not on this host" in rows(found)["dp"]["why"]


@pytest.mark.parametrize(
    ("behaves", "why"),
    [
        ({"bench": {"say": "ValueError: no tokenizer", "exit": 3}}, "ended with exit code 3"),
        ({"bench": {"silent": True}}, "not one token came"),
    ],
)
def test_a_tool_without_a_result_fails_the_row(
    host: Ground, behaves: dict[str, Any], why: str
) -> None:
    host.behave(**behaves)
    found = host.document("--topology", "dp")
    assert found["exit"] == 1
    assert why in rows(found)["dp"]["why"]
    assert host.names() == []


def test_an_engine_on_the_host_itself_is_measured_there(host: Ground) -> None:
    host.write(in_container=False)
    host.behave(**{"1p1d": {"gap_ms": 20}})
    found = host.document("--topology", "dp", "--topology", "1p1d")
    assert found["exit"] == 0, found["rows"]
    assert [row["state"] for row in found["rows"]] == ["measured", "measured"]
    assert rows(found)["dp"]["results"][0]["command"].startswith("sh -c ")
    assert host.names() == []
    assert host.host.exec("pgrep", "-f", "vllm serve", check=False).returncode == 1


def test_a_taken_port_is_refused_with_its_owner(host: Ground) -> None:
    listener = "import socket,time; s=socket.create_server(('', 8000)); time.sleep(600)"
    host.host.exec("sh", "-c", f'setsid python3 -c "{listener}" </dev/null >/dev/null 2>&1 &')
    try:
        until(lambda: b":1F40" in host.host.exec("cat", "/proc/net/tcp").stdout, "it listens")
        found = host.document("--topology", "tp")
    finally:
        host.host.exec("pkill", "-f", "create_server", check=False)
    assert found["exit"] == 4
    assert rows(found)["tp"]["cause"] == "NET-05"
    assert "python3" in rows(found)["tp"]["evidence"]


def test_a_deployment_of_ours_on_the_gpus_is_named_with_how_to_stop_it(host: Ground) -> None:
    host.host.exec("touch", "/model/foreign")
    label = ("--label", "bringup.config=sha256:1")
    host.host.exec("docker", "run", "-d", "--name", f"{NAME}-prefill", *label, host.image,
                   "/bin/sleep", "600")  # fmt: skip
    found = host.document()
    assert found["exit"] == 4
    assert rows(found)["dp"]["fix"] == f"{NAME} runs there: bringup serve.stop --deployment {NAME}"
    assert host.names() == [f"{NAME}-prefill"]


def test_a_host_that_is_cut_off_keeps_the_rows_before(host: Ground) -> None:
    host.behave(tp={"load_s": 600})
    begun = host.begin(*TWO)
    host.waits_for(begun, "tp")
    host.host.cut()
    try:
        code = begun.ends(seconds=600)
    finally:
        host.host.mend()
    assert code == 3, begun.log
    (file,) = host.folder.glob("state/bench/toy/*.json")
    assert [row["state"] for row in json.loads(file.read_text())["rows"]] == ["measured"]


def test_memory_that_nobody_holds_is_waited_for_until_it_is_free(host: Ground) -> None:
    known = read_inventory(str(host.inventory))
    workspace = Workspace(inventory=str(host.inventory), known_hosts=str(host.yard.known_hosts),
                    state=str(host.folder / "state"))  # fmt: skip
    one = known.hosts[host.host.name]
    host.host.exec("touch", "/model/leak")
    with tools_for(known, workspace, lambda _: None) as tools:
        assert in_use(tools, one, (0, 1)) == "GPU 0: 90,000 MiB in use; GPU 1: 90,000 MiB in use"
        host.host.exec("sh", "-c", "(sleep 2; rm /model/leak) >/dev/null 2>&1 &")
        assert in_use(tools, one, (0, 1), wait_s=240) == ""


def test_advice_believes_what_was_measured(host: Ground) -> None:
    host.behave(dp={"gap_ms": 150}, tp={"gap_ms": 2})
    assert host.document(*TWO)["exit"] == 0
    done = host.advise()
    last = json.loads(done.stdout.splitlines()[-1])
    assert last["advice"]["choice"] == "tensor parallel", said(done)
    assert last["advice"]["arguments"][0]["variable"] == "measured"
