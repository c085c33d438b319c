"""How the operator wants to look at hosts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ..core.verb import Help
from .hosts import DeploymentName


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """How to look at hosts and what to write. Files are paths, "" for none; `watch` is seconds."""

    deployment: DeploymentName = ""
    deep: Annotated[
        bool, Help("also measure what loads the hardware; never on a GPU that is in use")
    ] = False
    strict: Annotated[bool, Help("count warnings as failures")] = False
    facts: Annotated[bool, Help("show the facts below the findings")] = True
    junit: Annotated[str, Help("write JUnit XML to this file, for CI")] = ""
    html: Annotated[str, Help("write a page to this file, to share")] = ""
    masked: Annotated[bool, Help("take names and addresses out of the page")] = False
    from_: Annotated[tuple[str, ...], Help("judge this capture, contact no host; repeatable")] = ()
    changed_since: Annotated[str, Help("tell what changed since this capture; one host")] = ""
    watch: Annotated[int, Help("look again every so many seconds and tell what changed")] = 0
