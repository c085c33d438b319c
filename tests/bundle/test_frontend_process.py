"""How a frontend was started, its log, and whether it reaches a worker: asked as of a host."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from bringup.bundle.doctor import causes
from bringup.bundle.frontend_process import (
    FrontendProcess,
    container_log,
    file_log,
    parse_processes,
    pod_log,
)
from bringup.bundle.releases import release_of
from bringup.bundle.self_hosting import advise
from bringup.core.errors import ToolError
from bringup.core.reading import Absent, Known, Unknown, value_of
from bringup.core.script import Section
from bringup.edge.http import ask
from bringup.flow.bundle_doctor import (
    examine,
    find_frontend,
    gather,
    look_there,
    reaches,
    read_log,
)
from tests.dynamo.environment import VERSION
from tests.dynamo.fixtures import MakeLoopback
from tests.dynamo.model import toy_model
from tests.dynamo.processes import free_low_port, free_ports

from .here import HereHost


@pytest.mark.slow
@pytest.mark.xdist_group("dynamo")
def test_everything_is_asked_of_the_frontend_s_host_through_one_command_more(
    loopback: MakeLoopback, tmp_path: Path
) -> None:
    """As for a frontend in a container: nothing but scripts that run inside."""
    dynamo = loopback(discovery="file")
    model = toy_model(dynamo.folder / "models/toy")
    dynamo.worker(model, "toy")
    elsewhere = toy_model(tmp_path / "elsewhere")
    (model / "config.json").unlink()
    (elsewhere / "config.json").write_text("{}")
    frontend = dynamo.frontend("--model-path", str(elsewhere), namespace="dynamo")
    engine = _standing_in(tmp_path)
    inside = HereHost().site.container("frontend", engine=(str(engine),))
    settings = value_of(find_frontend(inside, frontend.url))
    assert settings is not None
    assert (settings.version, settings.model_path) == (VERSION, str(elsewhere))
    assert settings.namespace == Known("dynamo", f"process {frontend.program.child.pid}")
    frontend.program.says("Error adding model")
    findings = examine(
        gather(
            "toy",
            settings,
            announced=dynamo.announced,
            look=look_there(inside),
            log=lambda: read_log(inside, file_log(str(frontend.program.log_file))),
        )
    )
    assert [finding.id for finding in causes(findings)] == ["doctor-other-bytes"]


def _standing_in(folder: Path) -> Path:
    """A program that runs what follows ``exec --interactive NAME``, as a container engine does."""
    program = folder / "engine"
    program.write_text(
        '#!/bin/sh\n[ "$1 $2 $3" = "exec --interactive frontend" ] || exit 9\nshift 3\nexec "$@"\n'
    )
    program.chmod(0o755)
    return program


@pytest.mark.slow
@pytest.mark.xdist_group("dynamo")
def test_workers_that_serve_their_files_need_no_bundle(loopback: MakeLoopback) -> None:
    dynamo = loopback(discovery="file")
    model = toy_model(dynamo.folder / "models/toy")
    port = free_low_port()
    reached = reaches(HereHost().site, "127.0.0.1", port)
    advice = advise(release_of(VERSION), port=port, reached=reached)
    assert not advice.offered
    worker = dynamo.worker(model, "toy", system_port=port, env=advice.environment)
    reached = reaches(HereHost().site, "127.0.0.1", port)
    assert advise(release_of(VERSION), port=port, reached=reached).offered
    frontend = dynamo.frontend()
    frontend.lists("toy")
    (card,) = dynamo.announced().cards
    (url,) = {file.location for file in card.files if file.name == "config.json"}
    assert ask(url).body == (model / "config.json").read_bytes()
    (model / "config.json").unlink()
    blind = dynamo.frontend()
    blind.program.says("Error adding model")
    evidence = gather(
        "toy",
        value_of(find_frontend(HereHost().site, blind.url)),  # type: ignore[arg-type]
        announced=dynamo.announced,
        look=look_there(HereHost().site),
        log=lambda: blind.program.log,
    )
    assert [f.id for f in causes(examine(evidence))] == ["doctor-self-hosted"]
    assert worker.runs


@pytest.mark.parametrize(
    ("version", "names"),
    [("1.3.0.post1", True), ("1.6.1", False), ("", True)],
)
def test_worker_is_told_to_serve_its_files_only_where_it_would_not(
    version: str, names: bool
) -> None:
    advice = advise(release_of(version), port=8081, reached=Known(True))
    assert ("DYN_SELF_HOST_METADATA" in advice.environment) == names
    assert advice.offered


@pytest.mark.parametrize("reached", [Known(False), Unknown("curl is missing"), Absent()])
def test_self_hosting_is_not_offered_where_nobody_saw_it_work(
    reached: Known[bool] | Unknown | Absent,
) -> None:
    assert not advise(release_of("1.6.1"), port=8081, reached=reached).offered


def test_self_hosting_needs_a_port() -> None:
    assert not advise(release_of("1.6.1"), port=None, reached=Known(True)).offered


def test_port_that_dynamo_cannot_read_is_refused() -> None:
    advice = advise(release_of("1.3.0.post1"), port=53367, reached=Known(True))
    assert not advice.offered
    assert "above 32767" in advice.why


def test_port_that_takes_connections_is_reached_and_a_closed_one_is_not() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert value_of(reaches(HereHost().site, "127.0.0.1", port)) is True
    assert value_of(reaches(HereHost().site, "127.0.0.1", port)) is False


def test_missing_log_is_an_error_and_no_empty_log(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="cannot read the frontend's log"):
        read_log(HereHost().site, file_log(str(tmp_path / "nowhere.log")))


def test_no_frontend_is_told_from_one_on_another_port() -> None:
    (port,) = free_ports(1)
    found = find_frontend(HereHost().site, f"http://127.0.0.1:{port}")
    assert isinstance(found, Absent)


@pytest.mark.parametrize("text", ["", "7 YQ==", "end\n7", "7 * - -\nend"])
def test_answer_that_makes_no_sense_is_unknown(text: str) -> None:
    assert isinstance(parse_processes(Section("frontend-process", 0, text)), Unknown)


def test_flag_outweighs_its_variable() -> None:
    words = ("python3", "-m", "dynamo.frontend", "--namespace=a", "--http-port", "8123")
    process = FrontendProcess(7, words, {"DYN_NAMESPACE": "b", "DYN_CHAT_PROCESSOR": "sglang"})
    assert (process.namespace, process.port, process.processor) == ("a", 8123, "sglang")
    assert process.etcd == ("http://localhost:2379",)


def test_commands_for_logs_of_containers_and_pods_are_words() -> None:
    assert container_log("frontend")[:2] == ("docker", "logs")
    assert "deployment/frontend" in pod_log("deployment/frontend", namespace="dynamo")
