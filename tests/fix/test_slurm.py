"""A reservation against a stand-in for scontrol that keeps one in a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from bringup.core.receipt import Done, Outcome
from bringup.core.steps import State
from bringup.steps.back import back
from bringup.steps.slurm import reserve_step

from .hands import here, plan, settle, states

SCONTROL = r"""#!/bin/sh
f=$0.reservations
case "$*" in
*"show reservation"*)
  for last; do :; done
  grep -s "ReservationName=$last " "$f" || echo "Reservation $last not found" ;;
"create reservation"*) shift 2; echo "$* " >>"$f"; echo "Reservation created" ;;
"delete ReservationName="*) sed -i "/$2 /d" "$f" ;;
esac
"""


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A controller without reservations."""
    program = tmp_path / "scontrol"
    program.write_text(SCONTROL)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return program.with_name("scontrol.reservations")


def test_a_node_is_reserved_once_with_an_expiry(slurm: Path) -> None:
    assert states(settle([reserve_step("n1", days=7)])) == [State.SAME]
    assert slurm.read_text().count("\n") == 1
    assert "Duration=7-00:00:00" in slurm.read_text()


def test_a_reservation_of_that_name_for_other_nodes_is_told(slurm: Path) -> None:
    slurm.write_text("ReservationName=bringup-n1 Nodes=n[2-3] \n")
    assert plan([reserve_step("n1")])[0].observation.found == "reserved for others"


def test_a_controller_that_does_not_answer_is_unknown(slurm: Path) -> None:
    slurm.with_name("scontrol").write_text("#!/bin/sh\necho slurm_load_reservations: refused\n")
    assert states(plan([reserve_step("n1")])) == [State.UNKNOWN]


def test_undo_gives_the_node_back(slurm: Path) -> None:
    settle([reserve_step("n1")])
    way = back(Done("reservation:n1", Outcome.CHANGED, found="not reserved", wanted="reserved"))
    assert way.step is not None
    assert states(settle([way.step], shell=here)) == [State.SAME]
    assert slurm.read_text() == ""
