"""What an image answered, and topology advice, as people read them."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..engines.inspection import Inspected, compared
from ..engines.schema import hold
from ..engines.topology import Advice


def inspected_view(found: Iterable[Inspected]) -> RenderableType:
    """Return each package with its version, and how its flags differ from the shipped list."""
    return Group(*(_inspected(one) for one in found))


def _inspected(one: Inspected) -> RenderableType:
    if one.schema is None:
        return Text(f"{one.package}  unknown: {one.trouble}")
    schema = one.schema
    more, less = compared(schema, hold(schema.package, schema.version))
    lines = [Text(f"{schema.package} {schema.version}", "bold")]
    lines[0].append(f"  {len(schema.flags)} flags", "dim")
    if more or less:
        lines += [Text(f"  beyond the published list: {' '.join(more)}")] if more else []
        lines += [Text(f"  not in this image: {' '.join(less)}")] if less else []
    elif hold(schema.package, schema.version).exact:
        lines.append(Text("  the same flags as the published version", "dim"))
    else:
        lines.append(Text("  no published list of this version is shipped", "dim"))
    return Group(*lines)


def advice_view(advice: Advice) -> RenderableType:
    """Return the choice, an argument a row, and what would change it."""
    table = Table(box=None, padding=(0, 2), show_header=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for one in advice.arguments:
        leans = f"for {one.leans.value}" if one.leans else "for neither"
        text = Text(one.because)
        text.append(f"\n{one.figure}" if one.figure else "", "dim")
        table.add_row(one.variable, leans, text)
    if advice.witness:
        side = advice.witness.leans
        agrees = "agrees" if side is advice.choice else "differs"
        table.add_row(advice.witness.name, agrees, advice.witness.said)
    changes = [Padding(Text(f"- {line}"), (0, 0, 0, 2)) for line in advice.changes]
    return Group(
        Text(advice.headline, "bold"), table, Text("What would change this:", "dim"), *changes
    )
