"""What holds for each host of an Ansible inventory, worked out as Ansible does.

A child group overrules its parents; among groups of one depth, `ansible_group_priority` and then
the alphabet decide; a host's own word overrules all.
Source: https://docs.ansible.com/ansible/latest/inventory_guide/intro_inventory.html
"""

from __future__ import annotations

from collections.abc import Mapping

from .ansible_read import ALL, Tree, Variables

PRIORITY = "ansible_group_priority"


def variables_of(tree: Tree) -> dict[str, Variables]:
    """Return the variables that hold for each host."""
    depths = _depths(tree)
    order = sorted(tree.groups, key=lambda name: (depths[name], _priority(tree, name), name))
    members = {name: members_below(tree, name) for name in order}
    found: dict[str, Variables] = {host: {} for host in tree.hosts}
    for name in order:
        for host in tree.hosts if name == ALL else members[name]:
            found[host].update(tree.groups[name].variables)
            found[host].pop(PRIORITY, None)
    return {host: {**found[host], **own} for host, own in tree.hosts.items()}


def members_below(tree: Tree, name: str) -> frozenset[str]:
    """Return the hosts of a group and of all groups below it."""
    return frozenset(
        host for group in groups_below(tree, name) for host in tree.groups[group].hosts
    )


def groups_below(tree: Tree, name: str) -> frozenset[str]:
    """Return a group and all groups below it."""
    found, ahead = {name}, [name]
    while ahead:
        fresh = [
            child
            for child in tree.groups[ahead.pop()].children
            if child in tree.groups and child not in found
        ]
        found.update(fresh)
        ahead += fresh
    return frozenset(found)


def _depths(tree: Tree) -> Mapping[str, int]:
    """Return the longest way from `all` down to each group."""
    depths = {name: int(name != ALL) for name in tree.groups}
    for _ in tree.groups:  # each round settles one more level; a circle ends with the rounds
        before = dict(depths)
        for name, group in tree.groups.items():
            for child in group.children:
                if child in depths and child != name:
                    depths[child] = max(depths[child], min(depths[name] + 1, len(depths)))
        if depths == before:
            break
    return depths


def _priority(tree: Tree, name: str) -> int:
    """Return a group's priority; what is no number counts as Ansible's default."""
    said = str(tree.groups[name].variables.get(PRIORITY, 1))
    return int(said) if said.lstrip("-").isdecimal() and len(said) < 9 else 1
