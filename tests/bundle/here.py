"""This machine as a host, its trips counted; with busybox's tools instead of its own on request."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from bringup.core.errors import Unreachable
from bringup.core.host import Host, Login
from bringup.core.remote import Result
from bringup.core.steps import Push
from bringup.core.words import quote
from bringup.edge.actions import Call
from bringup.edge.local import LocalRemote
from bringup.edge.site import Site, site_of
from bringup.flow.bundle_push import PushTarget
from tests.needed import require


class HereHost(LocalRemote):
    """A local remote under a root folder that counts what it is asked for.

    `tools` is a folder of programs that scripts find first: see `busybox_tools`.
    """

    def __init__(
        self, root: str = "/", *, name: str = "b300-04", tools: Path | None = None
    ) -> None:
        super().__init__(Host(name, Login("localhost"), root=root))
        self.tools = tools
        self.trips = 0
        self.pushes = 0

    @property
    def site(self) -> Site:
        return site_of(self.host, self)

    def exchange(self, call: Call) -> Result:
        self.trips += 1
        if self.tools is None:
            return super().exchange(call)
        script = f"PATH={quote(str(self.tools))}\nexport PATH\n{call.script}"
        return super().exchange(
            Call(script, call.seconds, call.input, call.input_bytes, call.on_line)
        )

    def push(self, action: Push, *, on_bytes: Callable[[int], None] | None = None) -> None:
        self.pushes += 1
        super().push(action, on_bytes=on_bytes)


class GoneHost(HereHost):
    """A host that nobody reaches."""

    def exchange(self, call: Call) -> Result:
        raise Unreachable("cannot reach b300-99: connection refused")


class CutHost(HereHost):
    """A host whose answers end early: `kept` is the part that arrives."""

    def __init__(self, kept: float) -> None:
        super().__init__()
        self.kept = kept

    def exchange(self, call: Call) -> Result:
        result = super().exchange(call)
        return Result(result.exit, result.stdout[: int(len(result.stdout) * self.kept)])


def target(path: Path, host: HereHost | None = None) -> PushTarget:
    """Return a folder of a host as the target of a push."""
    remote = host or HereHost()
    return PushTarget(remote.host, str(path), remote)


def busybox_tools(folder: Path) -> Path:
    """Return a folder with busybox under the names of all its tools."""
    require("busybox")
    folder.mkdir()
    subprocess.run(["busybox", "--install", "-s", str(folder)], check=True)
    return folder
