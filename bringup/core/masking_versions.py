"""Versions of four numbers (cuDNN 9.10.2.21) that look like addresses: where they surely are none.

Two things must hold. What stands around one says that it is a version. And nothing else in the text
is an address of its network of 65,536: then it is masked as well, since it could be one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from ipaddress import IPv4Address

_FOUR = r"(?P<{}>(?:\d{{1,3}}\.){{3}}\d{{1,3}})(?![^\W_]|\.\w|[:/]\d)"
_VALUE = _FOUR.format("value")
_SURE = (
    re.compile(rf"\b[A-Z][A-Z0-9_]*VERSION=\"?{_VALUE}"),
    re.compile(rf"(?m)^\|?package[ \t]+[\w.-]+[ \t]+{_VALUE}"),
    re.compile(rf"\b[A-Z][A-Z0-9_]*PACKAGE=\"?[\w.+-]+={_VALUE}"),
    re.compile(rf":(?:amd64|arm64|all) \({_VALUE}"),
    re.compile(rf":(?:amd64|arm64|all) \([^(),\s]+, {_VALUE}"),
)
"""An image's variables, a line of our probes, apt's history: no address stands there."""

_LIKELY = (
    re.compile(rf"(?i)(?<![^\W_])version\"?(?: is)?[ \t]*[:=>]?[ \t]*[\"']?v?{_VALUE}"),
    re.compile(rf"(?<![\w.-])(?:nvidia|cuda|lib|torch|tensorrt|nccl)[a-z0-9-]*=={_VALUE}"),
    re.compile(rf"(?<![\w.]){_VALUE}(?=-\d+(?:[+~]|\.(?:el|fc)\d|ubuntu|\.cuda))"),
)
"""Here a private address would be masked all the same."""


def spared(
    text: str, address: re.Pattern[str], *, networks: Collection[str], known: Iterable[str]
) -> frozenset[int]:
    """Return where in a text the versions begin that look like an `address` and are none.

    `networks` are the first three numbers of addresses that were found in other forms, `known` are
    addresses that the caller knows.
    """
    sure = {m.start("value"): m["value"] for row in _SURE for m in row.finditer(text)}
    likely = {m.start("value"): m["value"] for row in _LIKELY for m in row.finditer(text)}
    told = {at: v for at, v in likely.items() if not _is_private(v)} | sure
    others = [m[0] for m in address.finditer(text) if m.start() not in told]
    taken = {_wide(one) for one in (*others, *networks, *known)}
    return frozenset(at for at, value in told.items() if _wide(value) not in taken)


def _wide(address: str) -> str:
    """Return the first two numbers: whoever has one address there may have more."""
    return ".".join(address.replace("-", ".").split(".")[:2])


def _is_private(value: str) -> bool:
    try:
        return not IPv4Address(value).is_global
    except ValueError:  # no address at all
        return False
