"""The scripts at work: start, status, stop, and every reason not to start."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from bringup.core.host import Deployment, Scalar
from tests.dynamo.processes import free_ports, until

from .situations import K3, TP2, role, world
from .test_scripts import rendered

ENGINE = """#!/bin/sh
printf '%s\\n' "$@" >"$SEEN/argv"
env >"$SEEN/env"
exec sleep 600
"""


@dataclass
class Worker:
    """A script written into a folder, with an engine that only sleeps."""

    folder: Path
    deployment: Deployment

    @property
    def script(self) -> Path:
        return self.folder / "script.sh"

    def write(self, **knobs: str | int | float | bool) -> None:
        """Render the script anew; a secrets file beside it where there are secrets."""
        deployment = replace(self.deployment, knobs={**self.deployment.knobs, **knobs})
        spec, text = rendered(deployment, world(deployment, "serve"))
        self.script.write_text(text)
        if spec.secrets_file:
            path = Path(spec.secrets_file)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(mode=0o600)
            path.write_text(spec.secrets_text)

    def __call__(self, word: str) -> subprocess.CompletedProcess[str]:
        seen = {"SEEN": str(self.folder), "PATH": os.environ["PATH"]}
        return subprocess.run(
            ["dash", self.script, word], env=seen, capture_output=True, text=True, check=False,
            timeout=600,
        )  # fmt: skip


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Worker]:
    """A TP=2 worker on the host itself, all its paths below one folder."""
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    binaries = tmp_path / "venv/bin"
    binaries.mkdir(parents=True)
    (binaries / "python").symlink_to("/bin/true")
    (binaries / "vllm").write_text(ENGINE)
    (binaries / "vllm").chmod(0o755)
    knobs: dict[str, Scalar] = {
        "venv": str(tmp_path / "venv"), "serve_folder": str(tmp_path / "serve"),
        "log_folder": str(tmp_path / "log"), "port": free_ports(1)[0],
    }  # fmt: skip
    made = replace(TP2, model=replace(TP2.model, path=str(model)), knobs={**TP2.knobs, **knobs})
    one = Worker(tmp_path, role(made, "serve", env={"HF_TOKEN": "hunter2 with 'quotes'"}))
    one.write()
    yield one
    one("--stop")


def test_a_worker_starts_once_and_stops(worker: Worker) -> None:
    assert worker("--status").returncode == 3
    started = worker("--start")
    assert started.returncode == 0, started.stderr
    assert "1800 s" in started.stdout
    assert worker("--status").returncode == 0
    assert "already runs" in worker("--start").stdout
    stopped = worker("--stop")
    assert "stopped" in stopped.stdout
    assert worker("--status").returncode == 3


def test_the_engine_gets_the_words_and_the_secret(worker: Worker) -> None:
    worker("--start")
    seen = worker.folder / "env"
    until(lambda: seen.exists() and "HF_TOKEN" in seen.read_text(), "the engine starts")
    assert "HF_TOKEN=hunter2 with 'quotes'" in seen.read_text().splitlines()
    assert "VLLM_USE_FLASHINFER_SAMPLER=0" in seen.read_text().splitlines()
    words = (worker.folder / "argv").read_text().splitlines()
    assert words[:2] == ["serve", str(worker.folder / "model")]
    assert words[words.index("--tensor-parallel-size") + 1] == "2"


def test_no_secret_stands_in_the_script_or_its_print(worker: Worker) -> None:
    assert "hunter2" not in worker.script.read_text()
    assert "hunter2" not in worker("--print").stdout


def test_a_secrets_file_that_others_can_read_is_refused(worker: Worker) -> None:
    file = next((worker.folder / "serve").rglob("*.env"))
    file.chmod(0o644)
    refused = worker("--start")
    assert refused.returncode == 4
    assert f"chmod 600 {file}" in refused.stderr


def test_a_model_that_is_gone_is_refused(worker: Worker) -> None:
    (worker.folder / "model/config.json").unlink()
    refused = worker("--start")
    assert refused.returncode == 4
    assert "model/config.json" in refused.stderr
    assert "nothing was started" in refused.stderr


def test_a_taken_port_is_refused_and_named(worker: Worker) -> None:
    port = int(worker.deployment.knobs["port"])
    with closing(socket.socket()) as listener:
        listener.bind(("0.0.0.0", port))
        listener.listen()
        refused = worker("--start")
    assert refused.returncode == 4
    assert f"port {port} (port) is taken" in refused.stderr


def test_an_engine_that_is_gone_is_refused(worker: Worker) -> None:
    (worker.folder / "venv/bin/python").unlink()
    assert "venv/bin/python" in worker("--start").stderr


def test_all_reasons_are_told_at_once(worker: Worker) -> None:
    (worker.folder / "model/config.json").unlink()
    (worker.folder / "venv/bin/python").unlink()
    assert worker("--start").stderr.count("cannot start") == 2


def test_a_worker_with_other_settings_is_told_and_left_alone(worker: Worker) -> None:
    worker("--start")
    worker.write(max_model_len=8192)
    assert worker("--status").returncode == 4
    refused = worker("--start")
    assert refused.returncode == 4
    assert "--stop, then start again" in refused.stderr


def test_a_reused_process_number_is_not_mistaken_for_the_worker(worker: Worker) -> None:
    worker("--start")
    state = next((worker.folder / "serve").rglob("*.pid"))
    pid, _, config = state.read_text().split()
    worker("--stop")
    state.write_text(f"{os.getpid()} 1 {config}\n")
    assert pid
    assert worker("--status").returncode == 3
    assert worker("--stop").returncode == 0  # and this very process lives on


def test_a_word_that_is_no_command_shows_the_usage(worker: Worker) -> None:
    wrong = worker("--begin")
    assert wrong.returncode == 2
    assert "--status" in wrong.stderr


def test_a_missing_rdma_device_is_refused(tmp_path: Path) -> None:
    """This machine has none of the devices that the K3 worker was settled on."""
    made = replace(K3, in_container=False, model=replace(K3.model, path=str(tmp_path)))
    (tmp_path / "config.json").write_text("{}")
    script = tmp_path / "script.sh"
    script.write_text(rendered(made, world(made, "decode"))[1])
    refused = subprocess.run(
        ["dash", script, "--start"], capture_output=True, text=True, check=False
    )
    assert refused.returncode == 4
    assert "RDMA devices not active: mlx5_9 mlx5_8" in refused.stderr
