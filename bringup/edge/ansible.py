"""Our `hosts.yml` out of an Ansible inventory: the same hosts, groups and logins, by our words.

Variables are worked out as Ansible would, then said where they hold: for all, for a group, for a
host. What has no place here is told in notes, and secrets are never carried over.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from ..core.errors import UsageError, unread
from .ansible_read import ALL, UNGROUPED, Group, Tree, parse
from .ansible_settings import SSH, carry
from .ansible_tree import groups_below, members_below, variables_of
from .ansible_write import Fleet, Settings, Team, write
from .inventory import problems_in
from .inventory_hosts import outside_fault
from .names import NAME, fold, natural


def convert(source: Path) -> tuple[str, tuple[str, ...]]:
    """Return the text of our `hosts.yml` for an Ansible inventory, and notes on what it leaves out.

    `source` is an INI or YAML inventory, or what `ansible-inventory --list` printed. Raises
    UsageError when it cannot be read.
    """
    fleet = settle(parse(_read(source), source.name))
    if not fleet.hosts:
        raise UsageError(f"cannot find a host in {source} that is reached over SSH")
    notes = (*fleet.notes, *_beside(source))
    text = write(fleet, source.name, notes)
    return text, (*notes, *(f"to mend: {problem}" for problem in problems_in(text)))


def _read(source: Path) -> str:
    better = f"ansible-inventory -i {source} --list > inventory.json, then read that"
    if source.is_dir():
        raise UsageError(f"cannot read {source}: it is a folder", remedy=better)
    try:
        text = source.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        remedy = f"name an inventory in INI, YAML or JSON (ls -l {source})"
        raise UsageError(f"cannot read {source}: {unread(error)}", remedy=remedy) from error
    if text.startswith("#!"):
        raise UsageError(f"cannot read {source}: it is a program", remedy=better)
    return text


def _beside(source: Path) -> tuple[str, ...]:
    """Note the folders of variables that only Ansible itself puts together."""
    found = [name for name in ("group_vars", "host_vars") if (source.parent / name).is_dir()]
    if not found or source.suffix == ".json":
        return ()
    better = f"read the output of ansible-inventory -i {source} --list"
    return (f"{' and '.join(found)} beside {source.name}: not read; {better}",)


Note: TypeAlias = tuple[str, str, str]
"""What a note speaks of, what it says, and the host that it is about ("" for none)."""

Hosts: TypeAlias = dict[str, dict[str, Any]]
"""What holds for each host. Any: as our schema has it."""


def settle(tree: Tree) -> Fleet:
    """Return what is carried over of an inventory."""
    hosts, notes = _hosts(tree)
    hosts, twins, found = _reachable(hosts)
    notes += found
    ours = _ours(tree, hosts, twins)
    members = {name: members_below(ours, name) for name in ours.groups}
    defaults = _said_by_all(hosts)
    said = {
        name: _agreed(carry(group.variables).settings, [hosts[h] for h in members[name]], defaults)
        for name, group in ours.groups.items()
    }
    notes += [
        (f"group {name!r}", "left out: no host, or no name here", "")
        for name in sorted({*tree.groups} - {*ours.groups, ALL, UNGROUPED})
    ]
    return Fleet(
        defaults,
        {
            name: Team(tuple(group.hosts), tuple(group.children), said[name])
            for name, group in ours.groups.items()
        },
        {
            host: _rest(own, [defaults, *(said[name] for name in said if host in members[name])])
            for host, own in hosts.items()
        },
        _told(notes),
    )


def _told(notes: list[Note]) -> tuple[str, ...]:
    """Return notes as lines, hosts of the same note together."""
    about: dict[tuple[str, str], list[str]] = {}
    for name, text, host in notes:
        about.setdefault((name, text), []).extend([host] if host else [])
    return tuple(
        f"{name} ({fold(hosts)}): {text}" if hosts else f"{name}: {text}"
        for (name, text), hosts in sorted(about.items())
    )


def _hosts(tree: Tree) -> tuple[Hosts, list[Note]]:
    """Return what holds for each host that can be one of ours, in natural order."""
    found: Hosts = {}
    notes: list[Note] = []
    variables = variables_of(tree)
    for host in sorted(variables, key=natural):
        connection = str(variables[host].get("ansible_connection", SSH[0]))
        if not NAME.fullmatch(host):
            notes.append((f"host {host!r}", "is no name here: name it, and say its address", ""))
        elif connection not in SSH:
            notes.append((f"ansible_connection={connection}", "left out: not over SSH", host))
        else:
            carried = carry(variables[host])
            notes += [(name, text, host) for name, text in carried.notes.items()]
            found[host] = {key: value for key, value in carried.settings.items()
                           if (key, value) != ("address", host)}  # fmt: skip
    return found, notes


def _reachable(hosts: Hosts) -> tuple[Hosts, dict[str, str], list[Note]]:
    """Return hosts each of which has a way of its own, what others are second names of, and notes.

    Taking one gateway away may make two hosts one, and the other way round: so until all is well.
    """
    twins: dict[str, str] = {}
    notes: list[Note] = []
    while True:
        hosts = {host: _renamed(said, hosts, twins) for host, said in hosts.items()}
        nowhere = [host for host in hosts if _leads_nowhere(host, hosts)]
        for host in nowhere:
            del hosts[host]["gateway"]
        fresh = _twins(hosts)
        if not nowhere and not fresh:
            return hosts, twins, notes
        notes += [("gateway", "left out: no address, or leads to itself", host) for host in nowhere]
        notes += [(f"second name of {first}", "left out", host) for host, first in fresh.items()]
        twins = {host: fresh.get(first, first) for host, first in twins.items()} | fresh
        hosts = {host: said for host, said in hosts.items() if host not in fresh}


def _twins(hosts: Hosts) -> dict[str, str]:
    """Return the hosts that are another one under a second name, with that one."""
    first: dict[object, str] = {}
    for host, said in hosts.items():
        first.setdefault(_way(host, said), host)
    return {
        host: first[_way(host, said)]
        for host, said in hosts.items()
        if first[_way(host, said)] != host
    }


def _way(host: str, said: Settings) -> object:
    return said.get("address", host), said.get("port", 22), tuple(said.get("gateway", ()))


def _renamed(said: Settings, hosts: Hosts, twins: Mapping[str, str]) -> dict[str, Any]:
    """Return settings whose gateways have the names that they have here."""
    jumps = [twins.get(jump, jump) for jump in said.get("gateway", ())]
    known = [jump if jump in hosts or re.search(r"[@:.]", jump) else f"{jump}:22" for jump in jumps]
    return {**said, "gateway": known} if known else dict(said)


def _leads_nowhere(host: str, hosts: Hosts) -> bool:
    """Return whether a gateway is no name, or leads through the host itself."""
    jumps = hosts[host].get("gateway", ())
    strange = any(outside_fault(jump, ()) for jump in jumps if jump not in hosts)
    return strange or host in jumps or _goes_back(host, hosts)


def _goes_back(host: str, hosts: Hosts) -> bool:
    """Return whether the way to a host leads through itself."""
    at, passed = host, set[str]()
    while at in hosts and at not in passed:
        passed.add(at)
        at = next(iter(hosts[at].get("gateway", ())), "")
        if at == host:
            return True
    return False


def _ours(tree: Tree, hosts: Hosts, twins: Mapping[str, str]) -> Tree:
    """Return the groups that can be ours, with the members that are left."""
    kept = [
        name
        for name in sorted(tree.groups, key=natural)
        if name not in (ALL, UNGROUPED)
        and NAME.fullmatch(name)
        and _present(members_below(tree, name), hosts, twins)
    ]
    return Tree({name: _ours_group(name, kept, tree, hosts, twins) for name in kept}, hosts)


def _ours_group(
    name: str, kept: list[str], tree: Tree, hosts: Hosts, twins: Mapping[str, str]
) -> Group:
    """Return one group; hosts of groups below it that cannot be ours become its own."""
    group = tree.groups[name]
    below = [child for child in dict.fromkeys(group.children) if child in tree.groups]
    ours = [child for child in below if child in kept and name not in groups_below(tree, child)]
    others = {host for child in below if child not in ours for host in members_below(tree, child)}
    return Group(_present({*group.hosts} | others, hosts, twins), ours, group.variables)


def _present(names: Iterable[str], hosts: Hosts, twins: Mapping[str, str]) -> list[str]:
    real = {twins.get(name, name) for name in names}
    return sorted((name for name in real if name in hosts), key=natural)


def _agreed(own: Settings, members: list[dict[str, Any]], defaults: Settings) -> dict[str, Any]:
    """Return what a group says, as far as it holds for each member and says more than defaults.

    So no two groups can disagree.
    """
    return {
        key: members[0][key]
        for key in own
        if members
        and key != "address"
        and key in members[0]
        and all(each.get(key) == members[0][key] for each in members)
        and members[0][key] != defaults.get(key)
    }


def _said_by_all(hosts: Hosts) -> dict[str, Any]:
    """Return settings that every host has: the value that most of them have."""
    found: dict[str, Any] = {}
    for key in sorted({key for said in hosts.values() for key in said} - {"address"}):
        values = Counter(json.dumps(said[key]) for said in hosts.values() if key in said)
        most, times = values.most_common(1)[0]
        if values.total() == len(hosts) > 1 and times * 2 > len(hosts):
            found[key] = json.loads(most)
    return found


def _rest(own: Settings, said: Iterable[Settings]) -> dict[str, Any]:
    """Return what a host says itself, beyond what is said for it already."""
    inherited = {key: value for settings in said for key, value in settings.items()}
    return {key: value for key, value in own.items() if inherited.get(key) != value}
