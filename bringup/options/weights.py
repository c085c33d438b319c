"""Which model folder goes where, and how it is copied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ..core.verb import Help
from .hosts import Hosts

DeploymentWord = Annotated[str, Help("deployment that says hosts and model path, instead of --to")]
Sums = Annotated[str, Help("compare with these SHA-256: a SHA256SUMS file, or git-lfs pointers")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCopy:
    """What is copied from where to where, in words: HOSTS:PATH, or a deployment's own folders."""

    from_: Annotated[
        str, Help("the source: HOST:PATH, or PATH here (default: whoever has all)")
    ] = ""
    mounted: Annotated[str, Help("the source: a path that each host sees itself, as a NAS")] = ""
    to: Annotated[tuple[str, ...], Help("folder: HOSTS:PATH (b300-[01-10]:/p); repeatable")] = ()
    deployment: DeploymentWord = ""
    host: Hosts = ()
    draft: Annotated[bool, Help("the deployment's draft model, instead of its model")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Copying:
    """How it is copied: what is compared, at which rate, by which way, what may be replaced."""

    hashes: Annotated[bool, Help("compare SHA-256 of whole files as well; reads them all")] = False
    sums: Sums = ""
    limit_mb_s: Annotated[float, Help("most MB/s that a host takes in; 0 is no limit")] = 0.0
    streams: Annotated[int, Help("files that a host takes in at a time")] = 4
    at_once: Annotated[int, Help("hosts that take in at a time")] = 16
    way: Annotated[str, Help("direct: from host to host; through: by way of here")] = "direct"
    port: Annotated[int, Help("port that hosts serve on; 0 takes one from 20000 to 31999")] = 0
    every: Annotated[bool, Help("also weight files that the index does not name")] = False
    replace: Annotated[bool, Help("write over files that differ, another revision's too")] = False
