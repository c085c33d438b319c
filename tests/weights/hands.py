"""Copy between hosts of a practice yard, as the verb does it."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from bringup.core.event import Event
from bringup.edge.ssh import SshFleet, SshOptions
from bringup.edge.store import Store
from bringup.flow.types import Tools
from bringup.flow.weights import CopyWish, Place, SyncPlan, plan_sync
from bringup.flow.weights_errand import Terms
from bringup.flow.weights_run import Copied, copy
from tests.fleet.yard import FleetHost, Yard

PATH = "/srv/models/K3"


class NoRenderer:
    """Nothing here is rendered."""

    def text(self, template: str, values: object) -> str:
        raise AssertionError(template)


@dataclass
class Hall:
    """An open fleet over the hosts of a yard, and what was told."""

    tools: Tools
    fleet: SshFleet
    hosts: dict[str, FleetHost]
    events: list[Event] = field(default_factory=list)
    at_share: float = 2.0
    then: Callable[[], object] = lambda: None
    _armed: threading.Lock = field(default_factory=threading.Lock)

    def listen(self, event: Event) -> None:
        """Keep an event; do what is to be done once a copy has come so far."""
        self.events.append(event)
        far = event.stage == "copy" and (event.share or 0) >= self.at_share and not event.is_end
        if far and self._armed.acquire(blocking=False):
            threading.Thread(target=self.then, daemon=True).start()

    def when(self, share: float, then: Callable[[], object]) -> None:
        """Do something in a thread of its own when any host's copy has come so far."""
        self.at_share, self.then = share, then

    def place(self, host: FleetHost, path: str = PATH) -> Place:
        return Place(host.host(), path, self.fleet.remote(host.name))

    def told(self) -> str:
        return "\n".join(f"{event.host} {event.stage} {event.text}" for event in self.events)

    def sync(
        self, source: FleetHost | Place, targets: Sequence[FleetHost | Place],
        *, terms: Terms = Terms(), **more: object,  # noqa: B008
    ) -> tuple[SyncPlan, dict[str, Copied]]:  # fmt: skip
        """Plan and copy, as the verb does."""
        wish = CopyWish(tuple(map(self._placed, targets)), self._placed(source), terms=terms)
        wish = replace(wish, **more)  # type: ignore[arg-type]
        plan = plan_sync(self.tools, wish)
        return plan, copy(self.tools, plan)

    def _placed(self, one: FleetHost | Place) -> Place:
        return one if isinstance(one, Place) else self.place(one)


@contextmanager
def hall(yard: Yard, hosts: Sequence[FleetHost], tmp_path: Path) -> Iterator[Hall]:
    """Open a fleet over hosts; quick to see that a line is gone."""
    inventory = {host.name: host.host(connect_s=15.0, keepalive_s=3.0) for host in hosts}
    options = SshOptions(known_hosts=yard.known_hosts, use_ssh_config=False)
    with SshFleet(inventory, options) as fleet:
        tools = Tools(
            fleet, NoRenderer(), Store(tmp_path / "state"), lambda: "now", lambda: "nonce", "me",
            "0",
        )  # fmt: skip
        one = Hall(tools, fleet, {host.name: host for host in hosts})
        one.tools = replace(tools, listen=one.listen)
        yield one


def put(host: FleetHost, folder: Path, path: str = PATH) -> None:
    """Put a folder of this machine onto a host, past SSH."""
    packed = subprocess.run(["tar", "-C", str(folder), "-cf", "-", "."], check=True,
                            capture_output=True).stdout  # fmt: skip
    host.exec("sh", "-c", f"mkdir -p {path} && tar --no-same-owner -xf - -C {path}", stdin=packed)


def sums(host: FleetHost, path: str = PATH) -> str:
    """Return the sums of all files below a folder of a host."""
    return host.text("sh", "-c", f"cd {path} && find . -type f | sort | xargs -d '\\n' sha256sum")


def left(host: FleetHost) -> str:
    """Return what a run left behind: its processes, its folder of keys."""
    look = "ls -d /dev/shm/bringup-* 2>/dev/null; ps -eo args | grep -E 'bringup-[0-9a-f]{12}'"
    return host.text("sh", "-c", f"{look} | grep -v grep; :")
