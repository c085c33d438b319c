"""An inventory as people read it."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..core.host import Deployment, Inventory, Login


def inventory_view(inventory: Inventory) -> RenderableType:
    """Return the hosts with kind, way in and groups, then the deployments with their roles."""
    hosts = Table("host", "kind", "GPUs", "login", "root", "groups", box=None, padding=(0, 2))
    for host in inventory.hosts.values():
        gpus = "" if host.gpu_count is None else str(host.gpu_count)
        groups = " ".join(host.groups)
        hosts.add_row(host.name, host.kind, gpus, login_text(host.login), host.root, groups)
    parts = [_deployment(deployment) for deployment in inventory.deployments.values()]
    return Group(Text(f"inventory {inventory.folder}", "bold"), hosts, *parts)


def login_text(login: Login) -> str:
    """Return user@address:port, through which gateways."""
    user = f"{login.user}@" if login.user else ""
    way = "".join(f" via {jump.address}" for jump in login.gateway)
    return f"{user}{login.address}:{login.port}{way}"


def _deployment(deployment: Deployment) -> RenderableType:
    head = Text(f"\n{deployment.name}", "bold")
    head.append(f"  {deployment.engine}, image {deployment.image.name}", "dim")
    roles = Table(box=None, padding=(0, 2), show_header=False)
    for role in deployment.roles:
        workers = ", ".join("+".join(worker) for worker in role.workers)
        roles.add_row(role.name, role.mode.value, workers)
    return Group(head, roles)
