"""Read the descriptions of practice hosts: one YAML file a host under `lab/hosts`.

A file may say ``like: OTHER`` and then only what differs: mappings merge, all else replaces.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import pydantic
import yaml
from ClusterShell.NodeSet import NodeSet, NodeSetException

from ..core.errors import InventoryError, Problem, UsageError
from .hardware import Hardware

FOLDER = Path(__file__).with_name("hosts")

_SCHEMA = pydantic.TypeAdapter(Hardware)


def names(folder: Path = FOLDER) -> tuple[str, ...]:
    """Return the names of all described hosts."""
    return tuple(sorted(path.stem for path in folder.glob("*.yml")))


def describe(wanted: Iterable[str] = (), *, folder: Path = FOLDER) -> tuple[Hardware, ...]:
    """Return the hardware of the wanted hosts, all described ones by default.

    Patterns such as ``b300-[01-30]`` unfold. A host without a file of its own is one more of the
    first described family that its name begins with (``b300-17`` is like ``b300-04``).
    Raises UsageError for a name of no family, InventoryError for a file that does not fit.
    """
    known = names(folder)
    hosts = tuple(name for pattern in wanted for name in _unfolded(pattern)) or known
    return tuple(_hardware(host, known, folder) for host in dict.fromkeys(hosts))


def _unfolded(pattern: str) -> tuple[str, ...]:
    try:
        return tuple(map(str, NodeSet(pattern)))
    except NodeSetException as error:
        raise UsageError(
            f"cannot unfold {pattern!r}: {error}", remedy="write it as b300-04 or b300-[01-30]"
        ) from None


def _hardware(host: str, known: tuple[str, ...], folder: Path) -> Hardware:
    model = host if host in known else _family(host, known)
    data = {**_data(model, folder), "name": host}
    if host != model:
        data["about"] = f"One more host like {model}."
    try:
        return _SCHEMA.validate_python(data)
    except pydantic.ValidationError as error:
        raise InventoryError(_problems(folder / f"{model}.yml", error)) from None


def _family(host: str, known: tuple[str, ...]) -> str:
    """Return the described host after which an undescribed one is made."""
    stem = re.sub(r"[-_.]?\d+$", "", host)
    kin = [name for name in known if re.sub(r"[-_.]?\d+$", "", name) == stem]
    if kin:
        return kin[0]
    near = get_close_matches(host, known, n=3, cutoff=0.4)
    raise UsageError(
        f"cannot make a practice host {host}: nothing described is like it",
        remedy=f"did you mean {' or '.join(near)}?" if near else f"described: {', '.join(known)}",
    )


def _data(name: str, folder: Path, seen: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return a file's data, laid over the data of the host that it is like."""
    path = folder / f"{name}.yml"
    if name in seen or not path.is_file():
        why = "is like itself" if name in seen else "does not exist"
        raise InventoryError((Problem(str(path), 0, "like", why),))
    data = yaml.load(path.read_bytes(), Loader=_Loader)  # noqa: S506 - the safe loader, in C
    if not isinstance(data, dict):
        raise InventoryError((Problem(str(path), 0, "", "should be a mapping"),))
    like = data.pop("like", None)
    return _merged(_data(str(like), folder, (*seen, name)), data) if like else data


_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return `above` laid over `below`. A null above takes the value away."""
    mixed = dict(below)
    for key, value in above.items():
        old = mixed.get(key)
        if value is None:
            mixed.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(old, Mapping):
            mixed[key] = _merged(old, value)
        elif isinstance(value, Mapping) and isinstance(old, list) and all(map(_is_index, value)):
            mixed[key] = [
                _merged(item, value[place]) if place in value else item
                for place, item in enumerate(old)
            ]
        else:
            mixed[key] = value
    return mixed


def _is_index(key: object) -> bool:
    return isinstance(key, int)


def _problems(path: Path, error: pydantic.ValidationError) -> tuple[Problem, ...]:
    return tuple(
        Problem(str(path), 0, "/".join(map(str, row["loc"])), row["msg"]) for row in error.errors()
    )
