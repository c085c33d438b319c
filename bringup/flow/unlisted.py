"""Ask the bundle's doctor why registered workers are not listed, with what a wait has seen."""

from __future__ import annotations

from dataclasses import replace

from ..bundle.doctor import causes
from ..bundle.match import Held
from ..core.errors import ToolError
from ..core.reading import Known, Unknown
from ..core.rules import Finding
from ..edge.site import site_of
from ..readiness.cards import Announced
from ..readiness.failures import Catalogue, diagnose
from ..readiness.stages import Stage
from ..readiness.verdict import Over
from ..readiness.watch import State
from .bundle_doctor import (
    Frontend,
    Look,
    examine,
    find_frontend,
    gather,
    look_there,
)
from .look import Looker


def explained(over: Over, state: State, looker: Looker, known: Catalogue) -> Over:
    """Return the verdict with the doctor's causes, where it is the list that stays empty."""
    if over.stage is not Stage.LISTED or over.who or not state.cards:
        return over
    found = causes(_examined(state, looker))
    backed = [replace(match, backed_by=_backing(match.failure.checks, found))
              for match in over.matches]  # fmt: skip
    again = diagnose(known.rows, (), replace(known.case, findings=found))
    return replace(over, findings=found, matches=tuple(backed) or again)


def _backing(checks: tuple[str, ...], found: tuple[Finding, ...]) -> tuple[Finding, ...]:
    return tuple(finding for finding in found if finding.id in checks)


def _examined(state: State, looker: Looker) -> tuple[Finding, ...]:
    front, look = _front(looker)
    evidence = gather(
        state.name,
        front,
        announced=lambda: _announced(state),
        look=look,
        log=lambda: _log(state),
        opener=looker.opener(),
    )
    return examine(evidence)


def _front(looker: Looker) -> tuple[Frontend, Look]:
    """Return the frontend with how to look at its files: only where it is on a host of ours."""
    url, front = looker.frontend, looker.target.front
    if front is None:
        return Frontend(url), _blind
    host = looker.target.inventory.hosts[front.host]
    site = site_of(host, looker.remote(front.host))
    try:
        found = find_frontend(site, url)
    except ToolError as error:
        found = Unknown(error.message)
    known = found.value if isinstance(found, Known) else Frontend(url)
    return known, _blind if front.contained else look_there(site)


def _blind(folder: str, _names: frozenset[str]) -> Held:
    raise ToolError(f"cannot look at {folder}: the frontend's files are not on a host of ours")


def _announced(state: State) -> Announced:
    if state.announced is None:
        raise ToolError("cannot read discovery: it was not read")
    return state.announced


def _log(state: State) -> str:
    """The log of what is in front, where bringup runs it."""
    fronts = [watched for watched in state.workers.values() if watched.worker.is_front]
    if not fronts:
        raise ToolError("cannot read the frontend's log: it runs elsewhere")
    return "\n".join(fronts[0].lines)
