"""How undoing reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.text import Text

from ..core.plan import document as plan_document
from ..core.receipt import document as receipt_document
from .alike import by_host
from .findings import plan_view, receipt_view

if TYPE_CHECKING:
    from typing import Protocol

    from ..core.outcome import Ended
    from ..steps.back import Back

    class Undone(Protocol):
        """How undoing came out on one host."""

        @property
        def ended(self) -> Ended: ...

        @property
        def left(self) -> tuple[Back, ...]: ...

        @property
        def receipts(self) -> tuple[str, ...]: ...

        @property
        def gone(self) -> tuple[str, ...]: ...


def undo_view(undone: Iterable[Undone]) -> RenderableType:
    """Return what was taken back on each host, and what has no way back."""
    told = {one.ended.host: tuple(_host(one)) for one in undone}
    return Group(Text(), *by_host(told))


def _host(one: Undone) -> Iterator[RenderableType]:
    if one.receipts:
        yield Text(f"  takes back   {' '.join(one.receipts)}", "dim")
    if one.gone:
        yield Text(f"  back already {', '.join(one.gone)}", "dim")
    if one.ended.receipt is not None:
        yield receipt_view(one.ended.receipt)
        yield Text(f"  receipt      {one.ended.record}", "dim")
    elif one.ended.plan is not None:
        yield plan_view(one.ended.plan, diff=True)
    else:
        yield Text("  nothing was taken back: see the error below", "red")
    for way in one.left:
        yield Text(f"  stays        {way.id}  ", "yellow").append(way.why_not, "dim")


def undone_document(one: Undone) -> dict[str, Any]:
    """Return one host's outcome as plain data."""
    ended = one.ended
    return {
        "schema": "bringup.undo/1",
        "host": ended.host,
        "exit": int(ended.code),
        "receipts": list(one.receipts),
        "back_already": list(one.gone),
        "plan": plan_document(ended.plan) if ended.plan else None,
        "receipt": receipt_document(ended.receipt) if ended.receipt else None,
        "record": ended.record or None,
        "left": [{"id": way.id, "why": way.why_not} for way in one.left],
        "error": ended.error.message if ended.error else None,
    }
