"""How the demo reads: a heading a stage, and at the end where everything lies."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rich.console import Group, RenderableType
from rich.rule import Rule
from rich.text import Text

from ..lab.fleet import LabStatus


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of the demo; `check` plans without applying."""

    number: str
    name: str
    what: str
    check: bool


def stage_view(stage: Stage) -> RenderableType:
    """Return the heading of a stage."""
    return Group("", Rule(f"{stage.number}  {stage.name}: {stage.what}", align="left"))


def closing_view(status: LabStatus, folder: Path) -> RenderableType:
    """Return where the scripts and receipts lie, and what to try next."""
    scripts = sorted(path for host in status.hosts for path in host.root.rglob("serve_*.sh"))
    receipts = sorted((folder / "state" / "receipts").rglob("*.json"))
    rows: list[RenderableType] = [Text("\nscripts", "bold")]
    rows += [Text(f"  {_short(path)}") for path in scripts]
    rows += [Text("receipts", "bold"), *(Text(f"  {_short(path)}") for path in receipts)]
    where = _short(status.inventory)
    rows += [
        Text("next", "bold"),
        Text(f"  ./run probe --host b200-01 --inventory {where}      a driver-only host"),
        Text(f"  ./run probe --host b300-13 --inventory {where}      a broken one"),
        Text("  ./run lab.down                                               stop the fleet"),
        Text("  docs/operate.md                                              your own hosts"),
    ]
    return Group(*rows)


def _short(path: Path) -> Path:
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
