"""Step kinds: a node reserved or drained in Slurm, so that it starts no job where a worker runs."""

from __future__ import annotations

from ..core.steps import Run, Step
from ..core.words import quote

DAYS = 30
"""A reservation ends by itself, so that a host that nobody gave back is not lost for ever."""

_OBSERVE = r"""
t=$(timeout 5 scontrol -o show reservation {name} 2>&1)
case $t in
*"ReservationName="*"Nodes={node} "*) echo reserved ;;
*"ReservationName="*) echo {others} ;;
*"not found"* | *"No reservations"*) echo "not reserved" ;;
*) printf '%s\n' "$t"; exit 1 ;;
esac
"""


def _look(node: str, others: str) -> str:
    """Return the look at our reservation; `others` tells of one of that name for other nodes."""
    name = quote(reservation_name(node))
    return _OBSERVE.format(name=name, node=quote(node), others=quote(others))


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
        observe=_look(node, "reserved for others"),
        wanted="reserved",
        actions=(Run(words, seconds=30),),
        why=why,
    )


OURS = "bringup"
"""How our reasons begin."""

# State has flags, as in MIXED+DRAIN+RESERVED; a reason is the last word, with who gave it and when.
_DRAIN = r"""
t=$(timeout 10 scontrol -o show node {node} 2>&1)
case $t in
*"NodeName="*) ;;
*) printf '%s\n' "$t"; exit 1 ;;
esac
s=${{t#* State=}}
case ${{s%% *}} in
*DRAIN*)
  case $t in *" Reason={ours}"*) echo "drained by us" ;; *) echo {others} ;; esac ;;
*) echo "in service" ;;
esac
"""


def drain_step(node: str, reason: str, *, why: str = "") -> Step:
    """Return the step that lets a node start no more jobs; those that run there go on.

    Slurm ends no drain by itself: the reason says until when it is meant (SLU-06 tells when that
    has passed). One who drained the node for a reason of their own keeps it so.
    """
    words = (
        "scontrol", "update", f"NodeName={node}", "State=DRAIN", f"Reason={OURS}: {reason}",
    )  # fmt: skip
    return Step(
        id=f"drain:{node}",
        title=f"drain {node} in Slurm",
        observe=_DRAIN.format(node=quote(node), ours=OURS, others="'drained by us'"),
        wanted="drained by us",
        actions=(Run(words, seconds=30),),
        why=why,
    )


def undrain_step(node: str) -> Step:
    """Return the step that takes our drain back, and nobody else's."""
    return Step(
        id=f"undrain:{node}",
        title=f"put {node} back into service in Slurm",
        observe=_DRAIN.format(node=quote(node), ours=OURS, others="'in service'"),
        wanted="in service",
        actions=(Run(("scontrol", "update", f"NodeName={node}", "State=UNDRAIN"), seconds=30),),
    )


def free_step(node: str) -> Step:
    """Return the step that ends our reservation of a node."""
    name = reservation_name(node)
    return Step(
        id=f"free:{node}",
        title=f"end the reservation {name} in Slurm",
        observe=_look(node, "not reserved"),
        wanted="not reserved",
        actions=(Run(("scontrol", "delete", f"ReservationName={name}"), seconds=30),),
    )
