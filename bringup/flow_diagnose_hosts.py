"""Diagnose the workers of a deployment by their logs and by what their hosts' checks say."""

from __future__ import annotations

from dataclasses import replace

from .core.reading import Known, why_not
from .flow_diagnose import Diagnosis, diagnose_text
from .flow_ready import case_of
from .flow_serve import Wish, know
from .flow_status import logs
from .flow_targets import Target, chosen
from .flow_types import Tools

LINES = 4000


def diagnose_hosts(tools: Tools, wish: Wish, target: Target) -> list[Diagnosis]:
    """Return what each worker's log tells, backed by the findings on its host."""
    workers = chosen(target.workers, hosts=wish.hosts, roles=wish.roles)
    known = know(tools, wish)
    said = logs(tools, target, workers, LINES)
    found = []
    for worker in workers:
        design = known.designs.get(worker.host)
        findings = design.findings if design else ()
        case = replace(case_of(target), findings=findings)
        lines = said[worker.key]
        if isinstance(lines, Known):
            found.append(diagnose_text(worker.key, "\n".join(lines.value), case))
        else:
            found.append(Diagnosis(worker.key, (), (f"unknown: {why_not(lines)}",)))
    return found
