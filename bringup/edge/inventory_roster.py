"""Who is who in `hosts.yml`: names unfolded, groups resolved, settings merged with their origin.

A host's own word overrules its groups', a group's overrules that of the groups which hold it, any
group's overrules the defaults. Two groups of equal standing that disagree are a fault.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ..core.nearest import did_you_mean
from .forms import shown
from .names import ALL, NAME, Names, PatternError, expand, fold, natural
from .schema import GroupEntry, HostsFile, Settings
from .yaml_marks import Path

Fault: TypeAlias = tuple[Path, str]
"""A key path and what is wrong there."""


@dataclass(frozen=True, slots=True)
class Said:
    """A value and the key path where it stands."""

    value: Any  # Any: whatever the key holds
    path: Path


NOTHING = Said(None, ())

Merged: TypeAlias = Mapping[Path, Said]
"""What holds for one host, by setting: ``("port",)``, ``("knobs", NAME)``."""


@dataclass(frozen=True, slots=True)
class Roster:
    """Who is who: the key that names each host, the members of each group, the groups above."""

    keys: Mapping[str, str] = field(default_factory=dict)
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    above: Mapping[str, frozenset[str]] = field(default_factory=dict)
    faults: tuple[Fault, ...] = ()

    @property
    def names(self) -> Names:
        return Names(tuple(self.keys), self.groups)

    def groups_of(self, host: str) -> tuple[str, ...]:
        return tuple(name for name, hosts in self.groups.items() if host in hosts)


def roster(file: HostsFile) -> Roster:
    """Return who is who in a hosts file, with all names that make no sense."""
    keys, faults = _unfolded(file)
    names = Names(tuple(sorted(keys, key=natural)))
    direct: dict[str, tuple[str, ...]] = {}
    for name, group in file.groups.items():
        direct[name], found = _direct_members(name, group, names)
        faults += [*found, *_group_name_faults(name, file)]
    below = {name: _below(name, file.groups) for name in file.groups}
    groups = {
        name: tuple(host for host in names.hosts if any(host in direct[g] for g in below[name]))
        for name in sorted(file.groups, key=natural)
    }
    above = {
        name: frozenset(g for g, held in below.items() if name in held and g != name)
        for name in groups
    }
    faulty = {path[1] for path, _ in faults if path[0] == "groups"}
    faults += [
        (("groups", name), "holds no host")
        for name, hosts in groups.items()
        if not hosts and name not in faulty
    ]
    faults += _circles(above)
    return Roster({host: keys[host] for host in names.hosts}, groups, above, tuple(faults))


def _unfolded(file: HostsFile) -> tuple[dict[str, str], list[Fault]]:
    """Return the key that names each host."""
    keys: dict[str, str] = {}
    faults: list[Fault] = []
    for key in file.hosts:
        try:
            hosts = expand(key)
        except PatternError as error:
            faults.append((("hosts", key), str(error)))
            continue
        for host in hosts:
            if host in keys:
                faults.append((("hosts", key), f"names {host}, which hosts/{keys[host]} names too"))
            keys.setdefault(host, key)
    return keys, faults


def _direct_members(
    name: str, group: GroupEntry, names: Names
) -> tuple[tuple[str, ...], list[Fault]]:
    members: list[str] = []
    faults: list[Fault] = []
    for pattern in group.hosts or ():
        if "@" in pattern:
            path: Path = ("groups", name, "hosts")
            faults.append((path, f"{pattern!r} names a group: put it under groups:"))
            continue
        try:
            members += names.match(pattern)
        except PatternError as error:
            faults.append((("groups", name, "hosts"), str(error)))
    return tuple(members), faults


def _group_name_faults(name: str, file: HostsFile) -> Iterator[Fault]:
    if not NAME.fullmatch(name):
        yield ("groups", name), "should be a name of letters, digits, dots and dashes"
    if name == ALL:
        yield ("groups", name), "is every host by itself: settings for all stand under defaults:"
    for other in file.groups[name].groups or ():
        if other == name:
            yield ("groups", name, "groups"), "holds itself"
        elif other not in file.groups:
            hint = did_you_mean(other, file.groups)
            yield ("groups", name, "groups"), f"no group {other!r}{hint}"


def _below(name: str, groups: Mapping[str, GroupEntry]) -> frozenset[str]:
    """Return a group and all groups that it holds, at any depth."""
    found, ahead = {name}, [name]
    while ahead:
        held = groups[ahead.pop()].groups or ()
        fresh = [other for other in held if other in groups and other not in found]
        found.update(fresh)
        ahead += fresh
    return frozenset(found)


def _circles(above: Mapping[str, frozenset[str]]) -> list[Fault]:
    return [
        (("groups", name, "groups"), f"holds {other}, which holds {name}")
        for name, holders in above.items()
        for other in sorted(holders)
        if name in above[other] and name < other
    ]


def merge(host: str, file: HostsFile, roster: Roster) -> tuple[Merged, tuple[Fault, ...]]:
    """Return what holds for a host, and where its groups disagree."""
    key = roster.keys[host]
    merged = dict(_flat(file.defaults, ("defaults",)))
    groups = {
        name: dict(_flat(file.groups[name], ("groups", name))) for name in roster.groups_of(host)
    }
    own = dict(_flat(file.hosts[key] or Settings(), ("hosts", key)))
    quarrels: list[Fault] = []
    for setting in sorted({setting for said in groups.values() for setting in said}):
        merged[setting], quarrel = _group_word(setting, groups, roster)
        if quarrel and setting not in own:
            quarrels.append((merged[setting].path, quarrel))
    return merged | own, tuple(quarrels)


def merge_all(file: HostsFile, roster: Roster) -> tuple[dict[str, Merged], tuple[Fault, ...]]:
    """Return what holds for each host, and one fault for each quarrel of groups."""
    said: dict[str, Merged] = {}
    hit: dict[Fault, list[str]] = {}
    for host in roster.keys:
        said[host], quarrels = merge(host, file, roster)
        for quarrel in quarrels:
            hit.setdefault(quarrel, []).append(host)
    return said, tuple(
        (path, f"{text} for {fold(hosts)}: say it there") for (path, text), hosts in hit.items()
    )


_MEMBERSHIP = {"hosts", "groups"}


def _flat(settings: Settings, path: Path) -> Iterator[tuple[Path, Said]]:
    for key, value in settings.said().items():
        if key == "knobs":
            for knob, word in value.items():
                yield ("knobs", knob), Said(word, (*path, "knobs", knob))
        elif key not in _MEMBERSHIP:
            yield (key,), Said(value, (*path, key))


def _group_word(
    setting: Path, groups: Mapping[str, Mapping[Path, Said]], roster: Roster
) -> tuple[Said, str]:
    """Return the word of the innermost group on a setting, and what contradicts it."""
    saying = [name for name, said in groups.items() if setting in said]
    overruled = frozenset[str]().union(*(roster.above[name] for name in saying))
    inner = [name for name in saying if name not in overruled] or saying
    first = groups[inner[0]][setting]
    for name in inner[1:]:
        other = groups[name][setting]
        if other.value != first.value:
            one, two = shown(first.value), shown(other.value)
            return first, f"groups {inner[0]} ({one}) and {name} ({two}) disagree"
    return first, ""
