"""Which commands show a log of an engine, and what of it can be read."""

from __future__ import annotations

import pytest

from bringup.core.reading import Absent, Known, Unknown
from bringup.probes.engine_log import EngineLog, EngineLogs
from bringup.probes.evidence import Output, facts_of

TEXT = "INFO the engine starts\nValueError: three rows, four were promised\nmore\n"

SHOWN = {
    "docker logs serve 2>&1 | tail -50": "docker logs serve",
    "sudo podman logs --tail 200 serve": "podman logs --tail 200 serve",
    "kubectl -n serving logs decode-0": "kubectl -n serving logs decode-0",
    "docker compose logs worker": "docker compose logs worker",
    "journalctl -xeu vllm-worker.service": "journalctl -xeu vllm-worker.service",
    "systemctl status sglang --no-pager": "systemctl status sglang --no-pager",
    "tail -n 50 /var/log/dynamo/worker.log": "/var/log/dynamo/worker.log",
    "cat serve.log": "serve.log",
    "grep -i error engine.log": "engine.log",
    "sed -n 1,50p slurm-4711.out": "slurm-4711.out",
    "worker: docker logs serve": "worker: docker logs serve",
    "docker exec serve tail /tmp/engine.log": "container serve: /tmp/engine.log",
}


def logs_in(line: str, output: Output) -> tuple[EngineLog, ...]:
    reading = facts_of({line: output})[EngineLogs]
    return reading.value.logs if isinstance(reading, Known) else ()


@pytest.mark.parametrize("line", SHOWN)
def test_a_log_is_known_by_where_it_comes_from(line: str) -> None:
    assert logs_in(line, Output(0, TEXT)) == (EngineLog(SHOWN[line], TEXT),)


@pytest.mark.parametrize(
    "line",
    [
        "vllm serve /models/example",
        "CUDA_VISIBLE_DEVICES=0 uv run vllm serve /models/example",
        "python3 -m sglang.launch_server --model-path /models/example",
        "python -m dynamo.vllm --model example 2>&1 | tee out.log",
        "docker run --rm --gpus all vllm/vllm-openai:v0.24.0 --model /models/example",
        "bash /opt/worker/start-worker.sh",
    ],
)
def test_a_start_in_the_foreground_is_a_log_with_an_exit_code(line: str) -> None:
    assert [(log.text, log.code) for log in logs_in(line, Output(1, TEXT))] == [(TEXT, 1)]


def test_a_start_that_somebody_stopped_has_no_exit_code_of_its_own() -> None:
    (log,) = logs_in("timeout 60 vllm serve /models/example", Output(124, TEXT))
    assert log.code is None


@pytest.mark.parametrize(
    "line",
    [
        "journalctl -u nvidia-fabricmanager",
        "journalctl -k",
        "systemctl status docker",
        "docker logs etcd",
        "docker run --rm --gpus all vllm/vllm-openai:v0.24.0 nvidia-smi",
        "docker run -d vllm/vllm-openai --model example",
        "vllm serve --help",
        "cat /var/log/nvidia-installer.log",
        "tail /var/log/syslog",
        "grep -c error engine.log",
        "cat /models/example/config.json",
    ],
)
def test_what_is_no_engines_log_is_left_to_others(line: str) -> None:
    assert EngineLogs not in facts_of({line: Output(0, TEXT)}).readings


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("Error response from daemon: No such container: serve", Absent),
        ("cat: serve.log: No such file or directory", Absent),
        ("permission denied while trying to connect to docker.sock", Unknown),
        ("", Unknown),
    ],
)
def test_a_log_that_nobody_could_read_tells_nothing(said: str, kind: type) -> None:
    reading = facts_of({"docker logs serve": Output(1, "", said)})[EngineLogs]
    assert isinstance(reading, kind)


def test_a_search_that_finds_nothing_tells_nothing() -> None:
    assert EngineLogs not in facts_of({"grep -i error engine.log": Output(1)}).readings


def test_logs_of_two_places_stand_side_by_side() -> None:
    lines = ("prefill: docker logs worker", "decode: docker logs worker")
    reading = facts_of({line: Output(0, TEXT) for line in lines})[EngineLogs]
    assert isinstance(reading, Known)
    assert [log.source for log in reading.value.logs] == list(lines)


def test_a_log_of_another_machine_counts_for_the_whole_deployment() -> None:
    """What else was asked there tells nothing of the host that is judged."""
    lines = ("gpu-a: docker logs worker", "gpu-b: docker logs worker")
    reading = facts_of({line: Output(0, TEXT) for line in (*lines, "nvidia-smi -L")})[EngineLogs]
    assert isinstance(reading, Known)
    assert [log.source for log in reading.value.logs] == list(lines)
