"""The verbs of an operator's desk, run in this process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from bringup.core.event import Listen, ignore
from bringup.core.fixes import Choice, Risk
from bringup.core.outcome import Ended
from bringup.flow.open import choose, deployments_for, read_inventory, tools_for
from bringup.flow.provision import provision
from bringup.flow.types import Order, Tools
from bringup.flow.undo import Undone, undo
from bringup.options.hosts import HostSelection, Workspace

from .test_provision_fix import Desk


@dataclass(frozen=True)
class Bench:
    """A desk whose verbs need no process of their own."""

    desk: Desk

    @property
    def _workspace(self) -> Workspace:
        folder = self.desk.folder
        return Workspace(
            inventory=str(folder / "inventory"), state=str(folder / "state"),
            known_hosts=str(self.desk.yard.known_hosts),
        )  # fmt: skip

    @contextmanager
    def _order(
        self, fix: Choice | None, *, check: bool, listen: Listen
    ) -> Iterator[tuple[Tools, Order]]:
        known = read_inventory(self._workspace.inventory)
        hosts = choose(known, HostSelection(host=(self.desk.host.name,)))
        order = Order(known, hosts, deployments_for(known, hosts, ""), check=check, fix=fix)
        with tools_for(known, self._workspace, listen) as tools:
            yield tools, order

    def provision(
        self, *only: str, check: bool = False, fixing: bool = True, listen: Listen = ignore
    ) -> Ended:
        fix = Choice(only, Risk.SERVICE) if fixing else None
        with self._order(fix, check=check, listen=listen) as (tools, order):
            (ended,) = provision(tools, order)
        return ended

    def undo(self, *, to: str = "", check: bool = False) -> Undone:
        with self._order(None, check=check, listen=ignore) as (tools, order):
            (undone,) = undo(tools, order.hosts, to=to, check=check)
        return undone
