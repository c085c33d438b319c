"""A remedy: one row of a table, and how rows become the fixes of a host."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from ..core.fixes import Choice, Fix, Risk
from ..core.reading import Known
from ..core.rules import Finding, Level, Status, World
from ..core.steps import Step
from ..probes.identity import Identity

Build = Callable[[World], tuple[Step, ...]]

MANAGERS = {
    "ubuntu": "apt", "debian": "apt", "dgxos": "apt",
    "rhel": "dnf", "rocky": "dnf", "almalinux": "dnf", "fedora": "dnf", "centos": "dnf",
}  # fmt: skip


def always(_: World) -> str:
    """Withhold nothing."""
    return ""


@dataclass(frozen=True, slots=True)
class Remedy:
    """What clears a finding. `build` returns () where it has no steps for this host.

    `unless` says why it must not be done now, "" where it may. `touches_units`: systemd reads its
    units anew on the way, which takes GPUs from containers that CTR-05 names. `on_note`: done for a
    mere note too. Lower `order` comes first. `told_as` are findings that tell the same fact of what
    is to run on the host (`decide.TOLD_BY`). `leads_to` are findings that may be gone, or may have
    a remedy, once this is done. `passes`: what `unless` says passes, and the fix is done later.
    """

    finding: str
    title: str
    build: Build
    order: int
    risk: Risk = Risk.SAFE
    cost: str = ""
    unless: Callable[[World], str] = always
    touches_units: bool = False
    on_note: bool = True
    only_named: str = ""
    told_as: tuple[str, ...] = ()
    leads_to: tuple[str, ...] = ()
    passes: bool = True

    @property
    def names(self) -> tuple[str, ...]:
        return (self.finding, *self.told_as)


def manager_of(world: World) -> str:
    """Return the host's package manager, "" where none is known."""
    reading = world.facts[Identity]
    return MANAGERS.get(reading.value.os_id, "") if isinstance(reading, Known) else ""


def fixes_for(
    table: Iterable[Remedy], world: World, findings: Iterable[Finding], choice: Choice
) -> tuple[Fix, ...]:
    """Return the fixes of a host's findings in the order in which they are to be done.

    What nobody could look at is never fixed; where it was named, it is told why. A finding without
    a remedy here, and one whose remedy is withheld, comes with the commands for a person.
    """
    rows = {name: row for row in table for name in row.names}
    wanted = [f for f in findings if _is_wanted(f, rows.get(f.id), choice)]
    open_ = {f.id: f for f in wanted if _is_open(f)}
    reloads = open_.get("CTR-05") or next((f for f in findings if f.id == "CTR-05"), None)
    found = [_fix(rows.get(id_), finding, world, choice, reloads) for id_, finding in open_.items()]
    found += [_unread(f) for f in wanted if choice.only and f.status is Status.UNKNOWN]
    order = FIRST | {id_: row.order for id_, row in rows.items()}
    kept = [fix for fix in found if fix is not None]
    ordered = sorted(kept, key=lambda fix: order.get(fix.finding.id, 100))
    taken = [fix.finding.id for fix in ordered if fix.is_taken]
    return tuple(_waiting(fix, [t for t in taken if fix.finding.id in rows[t].leads_to])
                 for fix in ordered)  # fmt: skip


FIRST = {"GPU-01": 2, "GPU-02": 3, "GPU-03": 3, "GPU-05": 4, "GPU-06": 4, "GPU-04": 5, "OS-09": 7}
"""What a person mends before all else: boards and their driver."""


def _waiting(fix: Fix, causes: list[str]) -> Fix:
    """Return a fix for a person as one that waits, where others may do away with its cause."""
    if fix.steps or not causes:
        return fix
    why = f"looked at again after {', '.join(causes)}"
    return replace(fix, withheld=why, commands=(), after=tuple(causes))


def _unread(finding: Finding) -> Fix:
    """Return the fix of a finding that was named, and of which nobody knows whether it is there."""
    why = finding.evidence[0] if finding.evidence else "unknown"
    commands = (finding.remedy,) if finding.remedy else ()
    return Fix(finding, "", Risk.SAFE, withheld=f"not fixed: {why}", commands=commands)


def _is_wanted(finding: Finding, row: Remedy | None, choice: Choice) -> bool:
    return not choice.only or _is_named(finding, row, choice)


def _is_named(finding: Finding, row: Remedy | None, choice: Choice) -> bool:
    names = (finding.id, row.finding) if row else (finding.id,)
    return any(name in choice.only for name in names)


def _is_open(finding: Finding) -> bool:
    return finding.status in (Status.FAIL, Status.WARN) and finding.level is not Level.OK


def _fix(
    row: Remedy | None, finding: Finding, world: World, choice: Choice, reloads: Finding | None
) -> Fix | None:
    is_named = _is_named(finding, row, choice)
    commands = (finding.remedy,) if finding.remedy else ()
    if row is None or (finding.level is Level.NOTE and not is_named and not row.on_note):
        is_note = finding.level is Level.NOTE and not is_named
        why = "no remedy here is safe to automate"
        return None if is_note else Fix(finding, "", Risk.DRAIN, withheld=why, commands=commands)
    steps = row.build(world)
    if not steps and finding.level is Level.NOTE and not is_named:
        return None
    unasked = "" if is_named else row.only_named
    withheld = unasked or _withheld(row, world, choice, reloads)
    withheld = withheld or ("" if steps else "not automated on such a host")
    if withheld and steps and row.passes and world.host.root == "/":
        commands = (_later(row, finding, world),)
    return Fix(finding, row.title, row.risk, row.cost, steps, withheld, commands)


def _later(row: Remedy, finding: Finding, world: World) -> str:
    """Return the command that does a fix once what withholds it is over, or once it is meant."""
    level = " --fix-level service" if row.risk is Risk.SERVICE else ""
    return f"bringup provision --host {world.host.name} --fix-only {finding.id}{level}"


def _level(row: Remedy) -> str:
    return f"it {row.risk.words}" if row.risk is Risk.SERVICE else row.risk.words


def _withheld(row: Remedy, world: World, choice: Choice, reloads: Finding | None) -> str:
    if world.host.root != "/":
        return f"the inventory reaches this host under the root {world.host.root}"
    if why := row.unless(world):
        return why
    is_trap = reloads is not None and reloads.status is Status.WARN
    if row.touches_units and is_trap and reloads is not None and reloads.level is Level.WARN:
        return f"CTR-05: a reload of systemd would take the GPUs away: {reloads.evidence[0]}"
    if row.risk > min(choice.level, Risk.SERVICE):
        return _level(row)
    return ""
