"""What the rails between two hosts gave, as people and machines read it."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from ..core.document import plain
from ..core.rules import Finding, Level, Status, verdict
from ..rules.rails import Measured
from .findings import COLOR


def rail_view(finding: Finding) -> RenderableType:
    """Return one rail as a line, as soon as it is measured."""
    said = "; ".join(finding.evidence)
    word = "unknown" if finding.status is Status.UNKNOWN else finding.level.value
    return Text.assemble((f"  {word:<8}", COLOR[finding.level]), " ", said)


def pair_view(measured: Measured) -> RenderableType:
    """Return what all rails come to, and what to do where one is not as it should be."""
    head = f"{measured.writer} to {measured.target}: {len(measured.rails)} rails"
    bad = [one for one in measured.findings if one.level in (Level.BLOCK, Level.WARN)]
    lines = [Text(f"{head}, {len(measured.rails) - len(bad)} as they should be", "bold")]
    lines += [
        Text(f"  do      {text}") for text in dict.fromkeys(one.remedy for one in bad) if text
    ]
    return Group(*lines)


def pair_document(measured: Measured) -> dict[str, Any]:
    """Return every rail with its ports, its reading and its finding as plain data."""
    return {
        "schema": "bringup.pair/1",
        "from": measured.writer,
        "to": measured.target,
        "verdict": verdict(measured.findings).value,
        "rails": [
            {
                "device": world.rail.device.name,
                "peer": world.rail.peer.name,
                "rate_gb_s": world.rail.rate_gb_s,
                "written": plain(world.reading),
                "finding": plain(finding),
            }
            for world, finding in zip(measured.rails, measured.findings, strict=True)
        ],
    }
