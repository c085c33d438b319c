"""Host patterns: `b300-[01-16]`, `@group`, `b300-*`, exclusion with `!`; and folding them again.

ClusterShell's NodeSet does the work. Here stand its limits, and errors that name what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException
from ClusterShell.NodeUtils import GroupResolver, GroupResolverError, GroupSource

from ..core.host import Inventory
from ..core.nearest import did_you_mean

MOST = 4096
"""Most hosts that one pattern may name; a typing error must not fill the memory."""

NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
"""A host, group, role, kind, deployment or image name."""

ALL = "all"
"""The group of every host; it need not be declared."""

_PATTERN = re.compile(r"[A-Za-z0-9._\-\[\],/!&^@*?]+")
_GROUP = re.compile(r"@([A-Za-z0-9._-]*)")


class PatternError(ValueError):
    """A pattern that does not parse, or names what does not exist. Says which, and why."""


@dataclass(frozen=True, slots=True)
class Names:
    """The host and group names that patterns may use."""

    hosts: tuple[str, ...] = ()
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def match(self, pattern: str) -> tuple[str, ...]:
        """Return the hosts that a pattern names, in natural order; raises PatternError."""
        groups = {**self.groups, ALL: self.hosts}
        for group in _GROUP.findall(pattern):
            if group not in groups:
                raise PatternError(f"no group {group!r}{did_you_mean(group, groups)}")
        found = _parsed(pattern, _resolver(groups))
        for name in found:
            if name not in self.hosts:
                raise PatternError(f"no host {name!r}{did_you_mean(name, self.hosts)}")
        return found


@lru_cache(maxsize=1024)
def expand(pattern: str) -> tuple[str, ...]:
    """Return the names that a folded name stands for; raises PatternError on bad ones."""
    if any(sign in pattern for sign in "@*?!&^"):
        raise PatternError(f"{pattern!r} should name hosts, as in b300-[01-16]")
    return _checked(pattern, _parsed(pattern, RESOLVER_NOGROUP))


@lru_cache(maxsize=1024)
def expand_addresses(pattern: str) -> tuple[str, ...]:
    """Return the addresses that a folded one stands for, in the order written."""
    if "[" not in pattern:
        return (pattern,)
    return _parsed(pattern, RESOLVER_NOGROUP)


def fold(names: Iterable[str]) -> str:
    """Return names in short form for people, in natural order: `b300-[04,07],web`."""
    return ",".join(fold_alike(names))


def fold_alike(names: Iterable[str]) -> tuple[str, ...]:
    """Return one folded name for all names that differ in their last number only."""
    alike: dict[str, list[str]] = {}
    for name in sorted(names, key=natural):
        alike.setdefault(re.sub(r"\d+(\D*)$", r"0\1", name), []).append(name)
    return tuple(str(NodeSet.fromlist(each, resolver=RESOLVER_NOGROUP)) for each in alike.values())


def natural(name: str) -> tuple[tuple[str, int, str], ...]:
    """Return a sort key under which `b300-9` comes before `b300-10`."""
    pieces = re.findall(r"(\D*)(\d*)", name)
    return tuple((text, int(number or -1), number) for text, number in pieces[:-1])


def names_of(inventory: Inventory) -> Names:
    """Return the names that patterns may use on an inventory."""
    return Names(tuple(inventory.hosts), inventory.groups)


def _checked(pattern: str, names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if not NAME.fullmatch(name):
            raise PatternError(
                f"{name or pattern!r} is no host name: letters, digits, dots and dashes"
            )
    return names


def _parsed(pattern: str, resolver: GroupResolver) -> tuple[str, ...]:
    if not _PATTERN.fullmatch(pattern):
        raise PatternError(f"{pattern!r} is no host pattern: write it like b300-[01-16] or @group")
    if _size(pattern) > MOST:
        raise PatternError(f"{pattern!r} names more than {MOST} hosts")
    try:
        found = tuple(NodeSet(pattern, resolver=resolver))
    except (NodeSetException, GroupResolverError) as error:
        raise PatternError(f"{pattern!r} does not parse: {_plain(error)}") from error
    return tuple(sorted(found, key=natural))


def _plain(error: Exception) -> str:
    return str(error).replace('"', "").rstrip(" :")


def _resolver(groups: Mapping[str, tuple[str, ...]]) -> GroupResolver:
    sets = {name: ",".join(hosts) for name, hosts in groups.items()}
    return GroupResolver(GroupSource("inventory", sets))


def _size(pattern: str) -> int:
    """Return the most names that the bracketed ranges can make, without making them."""
    return prod(
        sum(_span(part) for part in inside.split(","))
        for inside in re.findall(r"\[([^\]]*)\]", pattern)
    )


def _span(part: str) -> int:
    bounds = re.fullmatch(r"(\d+)-(\d+)(?:/\d+)?", part)
    if bounds is None:
        return 1
    if max(len(bounds[1]), len(bounds[2])) > 9:
        return MOST + 1
    return max(int(bounds[2]) - int(bounds[1]) + 1, 1)
