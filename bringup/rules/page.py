"""The page docs/checks.md, from the rows of all checks: declared once, written by nobody."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..core.rules import MEANING, Level, Row, Status, World

MARK = "<!-- what follows is written by hand -->\n"
"""Ends the part that is made from the rows."""

GROUPS: Sequence[tuple[str, str]] = (
    ("GPU", "GPUs and driver"),
    ("JIT", "CUDA toolkit and compilation at run time"),
    ("FAB", "Fabric manager and NVLink"),
    ("IB", "RDMA and GPUDirect"),
    ("CTR", "Container engine"),
    ("STO", "Storage and weights"),
    ("OS", "System and limits"),
    ("NET", "Network and services"),
    ("ENG", "Engine and Dynamo"),
    ("SLU", "Slurm beside us"),
    ("TIM", "Clocks"),
    ("SEC", "Access and security"),
)

HEAD = """# Checks

`bringup probe --host HOST` asks a host everything below in one trip and judges what it says. A
check passes, warns or fails with the line that shows it and what to do; it is *unknown* where
nobody could look, which is neither good nor bad; it is *skipped*, with the reason, where it does
not apply.

What a host comes to:

| verdict | when |
| --- | --- |
| blocked | a check fails that serving needs |
| unknown | something that serving needs was asked in vain |
| degraded | it serves with a fallback, in part, or with less margin |
| ready | nothing of the above; notes may stand all the same |

"Fails as" says what a failure means where the check itself does not say otherwise: a broken GPU
blocks only a role that cannot do without it.

"""


def page(rows: Iterable[Row[World]], opt_in: Iterable[Row[World]]) -> str:
    """Return the part of docs/checks.md that the rows tell, up to and with `MARK`."""
    asked = {row.id for row in opt_in}
    every = sorted((*rows, *opt_in), key=lambda row: row.id)
    known = {row.id: row for row in every}
    text = HEAD
    for prefix, title in GROUPS:
        mine = [row for name, row in known.items() if name.startswith(f"{prefix}-")]
        text += f"## {title} ({prefix})\n\n"
        text += "| check | what is right | why | fails as | what to do | source |\n"
        text += "| --- | --- | --- | --- | --- | --- |\n"
        text += "".join(_line(row, opt_in=row.id in asked) for row in mine) + "\n"
    return text + MARK


def _line(row: Row[World], *, opt_in: bool) -> str:
    level = row.levels.get(Status.FAIL, MEANING[Status.FAIL])
    cells = (
        row.id,
        row.title + (" (only when asked for)" if opt_in else ""),
        row.reason,
        {Level.BLOCK: "blocked", Level.WARN: "degraded"}.get(level, "note"),
        row.remedy or "depends on what was seen",
        f"[link]({row.source})" if row.source.startswith("http") else _own(row.source),
    )
    return "| " + " | ".join(_cell(cell) for cell in cells) + " |\n"


def _own(source: str) -> str:
    return f"[own]({source.removeprefix('docs/')})" if source.startswith("docs/") else source


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")
