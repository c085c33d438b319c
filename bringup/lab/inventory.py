"""What people and bringup need to reach the fleet: inventory, known_hosts and an ssh_config."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import yaml

from . import keys
from .hardware import Hardware, address
from .neighbours import Kind, Neighbour

DEPLOYMENTS = Path(__file__).with_name("deployments")
KINDS_OF_SERVICE: tuple[Kind, ...] = ("etcd", "nats", "frontend")
KINDS = (Path("inventory/kinds"), Path(__file__).parents[2] / "inventory" / "kinds")
"""Where kinds of hosts stand: in the working directory's inventory, else in the project's."""


def inventory_files(
    folder: Path, user: str, fleet: tuple[Hardware, ...], ports: Mapping[str, int]
) -> dict[str, str]:
    """Return the text of each file that describes the way to the fleet, by its path in `folder`."""
    kinds = _kinds()
    return {
        "inventory/hosts.yml": _hosts_file(folder, user, fleet, ports, kinds),
        **{f"inventory/kinds/{name}": text for name, text in kinds.items()},
        **{f"inventory/deployments/{name}": text for name, text in _plans(fleet).items()},
        "known_hosts": _known_hosts(folder, fleet, ports),
        "ssh_config": _ssh_config(folder, user, fleet, ports),
    }


def neighbours(fleet: tuple[Hardware, ...]) -> tuple[Neighbour, ...]:
    """Return the services that the fleet's deployments name, each once."""
    found: dict[Neighbour, None] = {}
    for text in _plans(fleet).values():
        services = yaml.safe_load(text).get("services", {})
        for kind in KINDS_OF_SERVICE:
            urls = services.get(kind, ())
            for url in [urls] if isinstance(urls, str) else urls:
                parts = urlsplit(url)
                if parts.hostname and parts.port:
                    found[Neighbour(parts.hostname, parts.port, kind)] = None
    return tuple(found)


def _plans(fleet: tuple[Hardware, ...]) -> dict[str, str]:
    """Return the deployments of which every host is in the fleet, by file name."""
    names = {hardware.name for hardware in fleet}
    plans = {path.name: path.read_text() for path in sorted(DEPLOYMENTS.glob("*.yml"))}
    return {name: text for name, text in plans.items() if _hosts(text) <= names}


def _kinds() -> dict[str, str]:
    folder = next((folder for folder in KINDS if any(folder.glob("*.yml"))), None)
    return {path.name: path.read_text() for path in sorted(folder.glob("*.yml"))} if folder else {}


def _hosts(plan: str) -> set[str]:
    """Return the hosts that a deployment names."""
    return {role["hosts"] for role in yaml.safe_load(plan)["roles"].values()}


def _hosts_file(
    folder: Path,
    user: str,
    fleet: Iterable[Hardware],
    ports: Mapping[str, int],
    kinds: Mapping[str, str],
) -> str:
    groups: dict[str, list[str]] = {}
    hosts = {}
    for hardware in fleet:
        for group in hardware.groups:
            groups.setdefault(group, []).append(hardware.name)
        kind = {"kind": hardware.kind} if f"{hardware.kind}.yml" in kinds else {}
        hosts[hardware.name] = {
            "address": "127.0.0.1",
            "port": ports[hardware.name],
            "host_key": keys.fingerprint(keys.public(folder / "keys", f"host-{hardware.name}")),
            "root": str(folder / "hosts" / hardware.name / "root"),
            "advertise": address(hardware.name),
            **({"gpu_count": len(hardware.slots)} if hardware.slots else {}),
            **kind,
        }
    data = {
        "defaults": {"user": user, "key_file": str(folder / "keys" / "operator")},
        "groups": {name: {"hosts": members} for name, members in groups.items()},
        "hosts": hosts,
    }
    return (
        "# The practice fleet. `lab.up` writes this file anew: describe hosts elsewhere.\n"
        + yaml.safe_dump(data, sort_keys=False, width=200)
    )


def _known_hosts(folder: Path, fleet: Iterable[Hardware], ports: Mapping[str, int]) -> str:
    return "".join(
        f"[127.0.0.1]:{ports[each.name]} {keys.public(folder / 'keys', f'host-{each.name}')}\n"
        for each in fleet
    )


def _ssh_config(
    folder: Path, user: str, fleet: Iterable[Hardware], ports: Mapping[str, int]
) -> str:
    hosts = "".join(f"Host {each.name}\n  Port {ports[each.name]}\n\n" for each in fleet)
    return (
        f"# ssh -F {folder}/ssh_config HOST\n\n{hosts}"
        f"Host *\n  HostName 127.0.0.1\n  User {user}\n"
        f"  IdentityFile {_quoted(folder / 'keys' / 'operator')}\n  IdentitiesOnly yes\n"
        f"  UserKnownHostsFile {_quoted(folder / 'known_hosts')}\n"
        "  GlobalKnownHostsFile /dev/null\n  StrictHostKeyChecking yes\n"
    )


def _quoted(path: Path) -> str:
    return f'"{path}"' if re.search(r"\s", str(path)) else str(path)
