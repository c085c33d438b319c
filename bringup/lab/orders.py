"""What the practice fleet's server is told to serve."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from . import keys
from .describe import names
from .hardware import USER, Hardware, address
from .inventory import neighbours


def orders(folder: Path, wanted: tuple[Hardware, ...], ports: Mapping[str, int]) -> dict[str, Any]:
    """Return fleet.json: all on which a server depends, so that another one is needed for others.

    `described` are the hosts that had a description then.
    """
    rows = [
        {
            "name": hardware.name,
            "about": hardware.about,
            "root": str(folder / "hosts" / hardware.name / "root"),
            "key": str(folder / "keys" / f"host-{hardware.name}"),
            "shown": keys.public(folder / "keys", f"host-{hardware.name}"),
            "address": address(hardware.name),
            "port": ports.get(hardware.name, 0),
            "faults": _plain(asdict(hardware.faults)),
        }
        for hardware in wanted
    ]
    return {
        "user": USER,
        "authorized": str(folder / "keys" / "operator.pub"),
        "operator": keys.public(folder / "keys", "operator"),
        "tools": str(folder / "machine" / "bin"),
        "code": _code(),
        "described": list(names()),
        "hosts": rows,
        "neighbours": [asdict(each) for each in neighbours(wanted)],
    }


def _code() -> str:
    """Return a sum of the server's own modules: one of other code is replaced by `up`."""
    modules = ("server", "session", "neighbours")
    texts = (Path(__file__).with_name(f"{name}.py").read_bytes() for name in modules)
    return hashlib.sha256(b"".join(texts)).hexdigest()


def _plain(value: object) -> Any:  # noqa: ANN401 - JSON
    return json.loads(json.dumps(value))
