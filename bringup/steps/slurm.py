"""Step kind: a reservation in Slurm, so that it starts no job where a worker runs."""

from __future__ import annotations

from ..core.steps import Run, Step
from ..core.words import quote

DAYS = 30
"""A reservation ends by itself, so that a host that nobody gave back is not lost for ever."""

_OBSERVE = r"""
t=$(timeout 5 scontrol -o show reservation {name} 2>&1)
case $t in
*"ReservationName="*"Nodes={node} "*) echo reserved ;;
*"ReservationName="*) echo "reserved for others" ;;
*"not found"* | *"No reservations"*) echo "not reserved" ;;
*) printf '%s\n' "$t"; exit 1 ;;
esac
"""


def reservation_name(node: str) -> str:
    """Return the name of our reservation, which is the reason that people see."""
    return f"bringup-{node}"


def reserve_step(node: str, *, user: str = "root", days: int = DAYS, why: str = "") -> Step:
    """Return the step that keeps jobs off a node from now on, for some days.

    Jobs that run there go on: the reservation does not end them.
    """
    name = reservation_name(node)
    words = (
        "scontrol", "create", "reservation", f"ReservationName={name}", f"Nodes={node}",
        f"Users={user}", "StartTime=now", f"Duration={days}-00:00:00", "Flags=IGNORE_JOBS",
    )  # fmt: skip
    return Step(
        id=f"reservation:{node}",
        title=f"reserve {node} in Slurm for {days} days",
        observe=_OBSERVE.format(name=quote(name), node=quote(node)),
        wanted="reserved",
        actions=(Run(words, seconds=30),),
        why=why,
    )
