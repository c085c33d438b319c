"""A probe as one HTML page for sharing: no outside assets, no script, readable on a phone."""

from __future__ import annotations

from collections.abc import Iterable

from ..core.masking import mask, without_secrets
from ..core.probed import Probed, by_verdict, counts, fact_rows, folded, worst
from ..core.rules import Status
from ..edge.names import fold


def page(
    probed: Iterable[Probed], *, tool: str, at: str = "", title: str = "", masked: bool = False
) -> str:
    """Return the page. Secrets never enter it; `masked` takes names and addresses out as well."""
    import jinja2

    every = tuple(probed)
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("bringup", "pages"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["fold"] = fold
    text = environment.get_template("probe.html.j2").render(
        title=title or f"Probe of {fold(one.host for one in every)}",
        verdict=worst(every).value,
        verdicts=[(each.value, names) for each, names in by_verdict(every).items()],
        machines={one.host for one in every if one.is_host},
        errors=[one for one in every if one.error is not None],
        findings=folded(every),
        unknown=Status.UNKNOWN,
        facts=fact_rows(every),
        counts=counts(every),
        count=len(every),
        seen=sum(bool(one.facts.readings) for one in every),
        tool=tool,
        at=at,
    )
    text = without_secrets(text)
    return mask(text, hosts=[one.host for one in every]) if masked else text
