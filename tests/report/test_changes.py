"""Changes of many hosts on one screen."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from bringup.core.changes import Change
from bringup.report.changes import changes_view, document

DOWN = Change("InfiniBand.devices[mlx5_4].state", "ACTIVE", "DOWN", "port mlx5_4 went down")
MIG = [Change(f"Gpus.gpus[{i}].mig", "False", "True") for i in range(8)]


def shown(changes: dict[str, list[Change]]) -> str:
    out = StringIO()
    Console(file=out, width=80, highlight=False).print(changes_view(changes, since="yesterday"))
    return out.getvalue()


def test_hosts_that_changed_alike_are_told_once() -> None:
    text = shown({"b300-04": [DOWN], "b300-07": [DOWN], "b300-08": []})
    assert text.count("port mlx5_4 went down") == 1
    assert "b300-[04,07]" in text
    assert "=  nothing" in text


def test_eight_gpus_that_changed_alike_are_one_line() -> None:
    assert "Gpus.gpus[0].mig: False → True (and 7 more alike)" in shown({"b300-04": MIG})


def test_data_has_every_change_and_its_schema() -> None:
    told = document({"b300-04": [DOWN, *MIG]}, since="yesterday")
    assert told["schema"] == "bringup.changes/1"
    assert len(told["hosts"]["b300-04"]) == 9
    assert told["hosts"]["b300-04"][0]["words"] == "port mlx5_4 went down"
