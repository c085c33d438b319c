"""Verbs over what people wrote down."""

from __future__ import annotations

from typing import Annotated

from ..core.errors import Exit
from ..core.verb import Help, Verb
from ..options.hosts import Folder
from ..report.screen import Screen


def inventory_show(screen: Screen, *, inventory: Folder = "inventory") -> Exit:
    """Show every host with what holds for it, and every deployment with its roles.

    Reading it checks it: each fault is told with file, line and key, all at once.
    """
    from ..flow.open import read_inventory
    from ..report.inventory import inventory_view

    known = read_inventory(inventory)
    screen.show(inventory_view(known))
    screen.emit({"schema": "bringup.inventory/1", "inventory": known})
    return Exit.DONE


def inventory_import(
    screen: Screen,
    source: Annotated[
        str, Help("Ansible inventory: INI, YAML, or `ansible-inventory --list` JSON")
    ],
    *,
    into: Annotated[str, Help("write hosts.yml here; refused when it exists")] = "",
) -> Exit:
    """Turn an Ansible inventory into ours; secrets are never copied, and what was left is told."""
    from pathlib import Path

    from ..edge.ansible import convert
    from ..flow.open import keep_new

    text, notes = convert(Path(source))
    if into:
        keep_new(Path(into), text)
    screen.show(text if not into else f"wrote {into}", *(f"note  {note}" for note in notes))
    screen.emit({"schema": "bringup.import/1", "hosts_yml": text, "notes": list(notes)})
    return Exit.DONE


VERBS = (
    Verb("inventory.show", inventory_show, reads_only=True),
    Verb("inventory.import", inventory_import),
)
