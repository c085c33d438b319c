"""What verbs cost a host: connections and commands, counted by the tool and held here."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Lab

pytestmark = pytest.mark.xdist_group("lab")

PAIR = ("--host", "b300-[04,07]")


def costs(lab: Lab, verb: str, *words: str) -> set[tuple[int, int]]:
    """Return connections and commands of every host in one run; its round trips are told too."""
    stats = lab.objects(verb, *words, "--stats")[-1]
    assert stats["schema"] == "bringup.stats/1"
    assert all(cost["sent"] and cost["received"] for cost in stats["hosts"].values())
    for cost in stats["hosts"].values():
        most = 6 * cost["connections"] + 2 * cost["commands"]
        assert 5 * cost["connections"] <= cost["round_trips"] <= most
    return {(cost["connections"], cost["commands"]) for cost in stats["hosts"].values()}


def test_a_look_is_one_connection_and_one_command(lab: Lab) -> None:
    assert costs(lab, "probe", *PAIR) == {(1, 1)}


def test_a_plan_looks_at_facts_and_steps_by_one_command_each(lab: Lab) -> None:
    assert costs(lab, "provision", *PAIR, "--check") == {(1, 2)}


def test_a_change_adds_lock_write_and_log(lab: Lab) -> None:
    assert costs(lab, "provision", *PAIR) == {(1, 5)}
    assert costs(lab, "provision", *PAIR) == {(1, 2)}


def test_a_bundle_that_is_there_already_is_one_command(lab: Lab, tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text('{"model_type": "qwen3", "eos_token_id": 1}')
    (model / "tokenizer_config.json").write_text('{"chat_template": "{{ messages }}"}')
    (model / "tokenizer.json").write_text("{}")
    bundle = tmp_path / "bundle.tgz"
    made = lab.bare("bundle.make", str(model), "--out", str(bundle))
    assert made.returncode == 0, made.stdout + made.stderr
    push = (str(bundle), "--to", "b300-[04,07]:/raid/frontend/model")
    assert lab.bare("bundle.push", *push, "--inventory", str(lab.inventory)).returncode == 0
    again = lab.bare("bundle.push", *push, "--inventory", str(lab.inventory), "--stats")
    rows = [line.split() for line in again.stdout.splitlines() if "b300-[04,07]" in line]
    assert ["1", "1"] in [row[1:3] for row in rows], again.stdout
