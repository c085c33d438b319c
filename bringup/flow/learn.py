"""Write the expectations of a kind of host from a golden one."""

from __future__ import annotations

from pathlib import Path

from ..core.errors import ToolError, UsageError
from ..core.event import Listen
from ..options.hosts import HostSelection, Workspace
from ..probes.golden import kind_text
from .gather import gather
from .open import keep_new, opened
from .provision import probes_of


def learn(workspace: Workspace, wanted: HostSelection, name: str, into: str, listen: Listen) -> str:
    """Return the kind file of the one chosen host, and keep it where a path was given.

    Raises UsageError where several hosts were named, or the host is no example.
    """
    with opened(workspace, wanted, listen) as (tools, order):
        if len(order.hosts) != 1:
            raise UsageError("cannot learn from several hosts at once", remedy="name one host")
        (host,) = order.hosts
        found = gather(tools, (host,), probes_of(order))[host.name]
    if isinstance(found, ToolError):
        raise found
    text = kind_text(found, name=name, host=host.name)
    if into:
        keep_new(Path(into), text)
    return text
