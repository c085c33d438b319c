"""The inventory folder: `hosts.yml`, `kinds/*.yml`, `deployments/*.yml`, and who is meant.

All that is wrong is reported at once, by file, line and key. The shipped files are the manual.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..core.errors import InventoryError, Problem, UsageError
from ..core.host import Host, Image, Inventory, Kind
from ..core.knobs import Knob
from ..core.nearest import did_you_mean
from . import inventory_deployments as deployments
from . import inventory_files as files
from . import inventory_hosts as hosts
from . import inventory_knobs as knob_table
from . import inventory_repositories as repositories
from . import yaml_marks
from .faults import Checked, check, merged
from .inventory_roster import Fault, Merged, Roster, merge_all, roster
from .names import PatternError, fold, names_of
from .schema import DeploymentEntry, HostsFile, KindEntry
from .yaml_marks import Document
from .yaml_marks import Path as KeyPath


def load(
    folder: Path,
    images: Path | None = None,
    *,
    knobs: Mapping[str, Knob] | None = None,
    engines: Iterable[str] | None = None,
) -> Inventory:
    """Read an inventory folder whole; `images` is the folder of image folders.

    Names of images, knobs and engines are checked where it is known which there are. Raises
    UsageError where there is no inventory, InventoryError with every fault of its files.
    """
    found = files.read(folder)
    promises, image_problems = files.read_promises(images) if images else (None, ())
    sheet = _sheet(found)
    known = _known(sheet, promises, engines)
    problems = (*found.problems, *image_problems, *_problems(sheet, known, knobs, folder))
    if problems:
        remedy = f"mend the files under {folder.resolve().parent}; no host was touched"
        told = sorted(problems, key=_by_cause)
        raise InventoryError(tuple(files.placed(one, folder) for one in told), remedy=remedy)
    return _inventory(folder, sheet, known)


def _by_cause(problem: Problem) -> tuple[bool, Problem]:
    """Sort hosts.yml first: what is wrong there shows again in the files that name its hosts."""
    return not problem.file.endswith("/hosts.yml"), problem


def problems_in(text: str) -> tuple[Problem, ...]:
    """Return what is wrong with the text of a `hosts.yml`; kinds are not looked up."""
    sheet = _sheet(files.Files(yaml_marks.read(text.encode(), "hosts.yml")))
    return tuple(_all(sheet.hosts, _host_faults(sheet, None)))


@dataclass(frozen=True, slots=True)
class _Sheet:
    """All files, checked one by one, and what holds for each host."""

    hosts: Checked[HostsFile]
    kinds: Mapping[str, Checked[KindEntry]]
    deployments: Mapping[str, Checked[DeploymentEntry]]
    roster: Roster
    said: Mapping[str, Merged]
    faults: tuple[Fault, ...]  # of the hosts file


def _sheet(found: files.Files) -> _Sheet:
    checked = check(found.hosts, HostsFile, _is_host)
    who = roster(checked.entry)
    said, quarrels = merge_all(checked.entry, who)
    return _Sheet(
        checked,
        {name: check(doc, KindEntry, _never) for name, doc in found.kinds.items()},
        {name: check(doc, DeploymentEntry, _is_flag) for name, doc in found.deployments.items()},
        who,
        said,
        (*who.faults, *quarrels),
    )


def _is_host(path: KeyPath) -> bool:
    return len(path) == 2 and path[0] == "hosts"


def _never(_: KeyPath) -> bool:
    return False


def _is_flag(path: KeyPath) -> bool:
    return len(path) == 4 and path[2] == "flags"


def _known(
    sheet: _Sheet, images: Mapping[str, Image] | None, engines: Iterable[str] | None
) -> deployments.Referable:
    counts = {
        host: said[("gpu_count",)].value
        for host, said in sheet.said.items()
        if ("gpu_count",) in said
    }
    readable = isinstance(sheet.hosts.document.data, dict)
    return deployments.Referable(
        sheet.roster.names if readable else None,
        counts,
        images,
        tuple(engines) if engines is not None else None,
    )


def _problems(
    sheet: _Sheet, known: deployments.Referable, knobs: Mapping[str, Knob] | None, folder: Path
) -> Iterator[Problem]:
    yield from _all(sheet.hosts, _host_faults(sheet, knobs, folder))
    for kind in sheet.kinds.values():
        yield from _all(kind, _kind_faults(kind.entry, knobs))
    for deployment in sheet.deployments.values():
        entry = deployment.entry
        found = [*deployments.faults(entry, known)]
        found += knob_table.in_deployment(entry, knobs) if knobs is not None else ()
        yield from _all(deployment, found)


def _all(checked: Checked[Any], faults: Iterable[Fault]) -> tuple[Problem, ...]:
    """Return a file's problems and faults; a file that holds no keys has no more to say."""
    if not isinstance(checked.document.data, dict):
        return checked.problems
    more = [checked.document.problem(path, text) for path, text in dict.fromkeys(faults)]
    return merged(checked.problems, tuple(p for p in more if not _follows(p, checked.problems)))


def _follows(problem: Problem, others: Iterable[Problem]) -> bool:
    """Return whether something is missing only because what is wrong below it was cut out."""
    below = f"{problem.key}/"
    is_empty = problem.message.startswith(("names no", "holds no", "is empty", "is missing"))
    return is_empty and any(other.key.startswith(below) for other in others)


def _host_faults(
    sheet: _Sheet, knobs: Mapping[str, Knob] | None, folder: Path | None = None
) -> Iterator[Fault]:
    if not sheet.hosts.entry.hosts:
        yield ("hosts",), "names no host"
    yield from sheet.faults
    yield from hosts.address_faults(sheet.roster, sheet.said)
    yield from hosts.gateway_faults(sheet.said)
    yield from repositories.faults(sheet.hosts.entry.repositories, folder)
    for said in sheet.said.values():
        kind = said.get(("kind",))
        if kind is not None and kind.value not in sheet.kinds:
            hint = did_you_mean(kind.value, sheet.kinds)
            yield kind.path, f"there is no kinds/{kind.value}.yml{hint}"
    if knobs is not None:
        yield from knob_table.in_hosts(sheet.hosts.entry, knobs)


def _kind_faults(entry: KindEntry, knobs: Mapping[str, Knob] | None) -> Iterator[Fault]:
    if "product_names" not in entry.said():
        yield ("product_names",), "is missing"
    if knobs is not None:
        yield from knob_table.in_kind(entry, knobs)


def _inventory(folder: Path, sheet: _Sheet, known: deployments.Referable) -> Inventory:
    file = sheet.hosts.entry
    return Inventory(
        str(folder),
        _hosts(folder, sheet),
        sheet.roster.groups,
        {name: _kind(name, each.document, each.entry) for name, each in sheet.kinds.items()},
        {
            name: deployments.build(name, each.document, each.entry, known)
            for name, each in sheet.deployments.items()
        },
        known.images or {},
        file.registry or "",
        file.registry_login or "",
    )


def _hosts(folder: Path, sheet: _Sheet) -> dict[str, Host]:
    sources = repositories.build(sheet.hosts.entry.repositories, folder)
    built = hosts.build(sheet.hosts.document, sheet.roster, sheet.said)
    return {name: replace(host, repositories=sources) for name, host in built.items()}


def _kind(name: str, document: Document, entry: KindEntry) -> Kind:
    said = entry.said()
    return Kind(
        name,
        knob_origins=document.origins(("knobs",), said.get("knobs")),
        origin=document.origin(()),
        **said,
    )


def select(
    inventory: Inventory,
    hosts: Sequence[str] = (),
    group: Sequence[str] = (),
    limit: str = "",
    exclude: Sequence[str] = (),
) -> tuple[Host, ...]:
    """Return the hosts that are meant, in natural order.

    `hosts` and `exclude` are patterns, `group` names groups (``all`` is every host), `limit` is a
    pattern that keeps part of them. Raises UsageError for a name that nobody knows, when nothing
    is named, and when nobody is left.
    """
    wanted = {*_matched(inventory, hosts, "--host")}
    wanted |= {*_matched(inventory, group, "--group", "@")}
    within = {*_matched(inventory, (limit or "@all",), "--limit")}
    left_out = {*_matched(inventory, exclude, "--exclude")}
    if not (hosts or group or limit):
        raise UsageError(
            "cannot tell which hosts are meant: none is named",
            remedy="name them with --host b300-04 or --group GROUP; --group all is every host",
        )
    chosen = ((wanted & within) if hosts or group else within) - left_out
    if not chosen:
        raise UsageError(
            "cannot go on without a host: the selection is empty",
            remedy=f"the inventory has {fold(inventory.hosts)}",
        )
    return tuple(inventory.hosts[name] for name in inventory.hosts if name in chosen)


def _matched(
    inventory: Inventory, patterns: Iterable[str], option: str, sign: str = ""
) -> Iterator[str]:
    names = names_of(inventory)
    for pattern in patterns:
        try:
            yield from names.match(sign + pattern)
        except PatternError as error:
            raise UsageError(
                f"cannot take {option} {pattern or repr('')}: {error}",
                remedy=f"bringup inventory.show --inventory {inventory.folder} lists them",
            ) from error
