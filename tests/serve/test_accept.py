"""Acceptance against the real frontend: shared and separate workers differ as the reports say."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.fleet.sshd import Sshd

from .conftest import MakePractice
from .practice import Practice

pytestmark = pytest.mark.slow

SLOW = ["--token-gap-ms", "20", "--prefill-tokens-per-s", "2000"]
"""A prompt of 6,000 tokens holds a device for 3 s: longer than a busy machine holds up a token."""

SMALL = ("--load", "smoke", "--prompt-tokens", "6000", "--seconds", "6", "--gap-p95-ms", "-1")


def accept(made: Practice, *more: str) -> dict[str, Any]:
    done = made.run("accept", "--json", *SMALL, *more)
    last: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert last["schema"] == "bringup.acceptance/1", done.stdout + done.stderr
    return last | {"exit": done.returncode}


def up(made: Practice) -> Practice:
    for part in ("prefill", "decode", "agg"):
        made.set(part, words=SLOW)
    made.start()
    done = made.run("ready", "--every", "0.3")
    assert done.returncode == 0, done.stdout + done.stderr
    return made


def worst(result: dict[str, Any], phase: str) -> float:
    return float(result["summary"][phase]["gaps"]["most"])


def test_prompts_stall_streams_of_a_shared_worker(deployment: MakePractice) -> None:
    made = up(deployment(roles={"serve": "aggregated"}))
    result = accept(made, "--stall-ms", "1500")
    assert worst(result, "load") > 2400, "a prompt of 6,000 tokens holds the device for 3 s"
    assert worst(result, "load") > worst(result, "idle")
    assert result["exit"] == 1
    assert "worst stall under load" in result["summary"]["broken"][0]
    assert result["summary"]["stalls"][0]["prompts"] >= 1
    assert abs(result["honesty"]["difference_ms"]) < 20
    assert re.fullmatch(r"\d{8}T\d{6}Z-smoke-changed\.html", Path(result["page"]).name)
    page = Path(result["page"]).read_text()
    assert "not accepted" in page
    assert f"<td>{result['context']['workers'][0]['config']}</td>" in page
    again = accept(made, "--stall-ms", "-1")
    assert again["exit"] == 0
    assert [row["name"] for row in again["beside"]] == ["this run", result["at"]]
    shown = made.run("accept", *SMALL, "--stall-ms", "-1").stdout
    assert result["at"] in shown, "earlier runs stand beside"


def test_prompts_leave_streams_of_a_pair_alone(deployment: MakePractice) -> None:
    made = up(deployment())
    result = accept(made, "--stall-ms", "2400")
    assert (result["exit"], result["summary"]["broken"]) == (0, [])
    assert worst(result, "load") < 2400, "a shared worker stalls for 3 s"
    assert result["summary"]["prompts_done"] == 3


def test_loads_are_listed_for_machines_too(deployment: MakePractice) -> None:
    listed = json.loads(deployment().run("accept", "--list", "--json").stdout)
    loads = {load["name"]: load for load in listed["loads"]}
    report = loads["k3-report"]
    assert (report["streams"], report["prompts"], report["prompt_tokens"], report["load_s"]) == (
        8, 29, 60_000, 120,
    )  # fmt: skip


def test_a_model_that_does_not_answer_is_an_error_with_what_to_do(
    deployment: MakePractice,
) -> None:
    made = deployment()
    done = made.run("accept", *SMALL)
    assert done.returncode == 1
    assert "bringup ready --now" in done.stderr


def test_a_run_through_ssh_says_so_and_what_it_adds(
    deployment: MakePractice, sshd: Sshd, tmp_path: Path
) -> None:
    login = {"user": "root", "port": sshd.port, "key_file": str(sshd.key)}
    made = deployment(roles={"serve": "aggregated"}, login=login, known_hosts=str(sshd.known_hosts))
    up(made)
    result = accept(made, "--via", "ssh", "--prompts", "1", "--stall-ms", "-1")
    assert result["exit"] == 0, result["summary"]["broken"]
    assert result["honesty"]["through"] == "h1"
    assert result["summary"]["tokens"] > 20
