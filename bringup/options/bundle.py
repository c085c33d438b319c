"""Where a frontend runs, and where workers announce themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ..core.verb import Help


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontendSpot:
    """Where a frontend runs: on a host or here, as a process, in a container or in a pod."""

    host: Annotated[str, Help("host that the frontend runs on (default: this machine)")] = ""
    container: Annotated[str, Help("the frontend's container, on that host or in the pod")] = ""
    engine: Annotated[str, Help("what runs the container, as 'sudo -n docker'")] = "docker"
    pod: Annotated[str, Help("the frontend's pod, as deployment/NAME; needs kubectl")] = ""
    namespace: Annotated[str, Help("the pod's namespace")] = "default"
    log: Annotated[str, Help("the frontend's log file")] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveryPlace:
    """Where workers announce themselves: in etcd, or in a folder. Empty: the deployment says."""

    etcd: Annotated[tuple[str, ...], Help("etcd endpoint, as the workers have it; repeatable")] = ()
    discovery: Annotated[str, Help("folder of file discovery (DYN_FILE_KV), instead of etcd")] = ""

    @property
    def is_said(self) -> bool:
        """Whether the operator named a place."""
        return bool(self.etcd or self.discovery)
