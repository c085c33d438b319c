"""Which part of a deployment a verb is about, and what the operator takes on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ..core.verb import Help
from .hosts import Hosts

DeploymentWord = Annotated[str, Help("deployment; may be left out where there is one")]
Local = Annotated[bool, Help("its hosts are all this machine: act here, without SSH")]
Accept = Annotated[
    tuple[str, ...], Help("start in spite of this check (GPU-20, SLU-01, …); repeatable")
]
Set = Annotated[tuple[str, ...], Help("set a knob by your own word: KNOB=VALUE; repeatable")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    """Which workers are meant: all of a deployment, or those of some hosts or roles."""

    deployment: DeploymentWord = ""
    host: Hosts = ()
    role: Annotated[
        tuple[str, ...], Help("role of the deployment, or frontend, etcd; repeatable")
    ] = ()
