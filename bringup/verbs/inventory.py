"""Verbs over what people wrote down."""

from __future__ import annotations

from ..core.errors import Exit
from ..core.verb import Verb
from ..report_screen import Screen
from .common import Folder


def inventory_show(screen: Screen, *, inventory: Folder = "inventory") -> Exit:
    """Show every host with what holds for it, and every deployment with its roles.

    Reading it checks it: each fault is told with file, line and key, all at once.
    """
    from ..flow_open import read_inventory
    from ..report_inventory import inventory_view

    known = read_inventory(inventory)
    screen.show(inventory_view(known))
    screen.emit({"schema": "bringup.inventory/1", "inventory": known})
    return Exit.DONE


VERBS = (Verb("inventory.show", inventory_show, reads_only=True),)
