"""The forms that values in an inventory take: ports, paths, URLs, fingerprints, folded names.

Each is an annotation for pydantic. A refusal is a ValueError whose whole text says what is wanted
and what was found.
"""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field

from ..core.host import Mode, Scalar
from ..core.nearest import did_you_mean
from .names import NAME, expand_addresses

_SHOWN = 80


def shown(value: object) -> str:
    """Return a value as messages show it, shortened when long."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _matching(form: str, want: str) -> AfterValidator:
    def check(value: str) -> str:
        if not re.fullmatch(form, value):
            raise ValueError(f"should be {want}, not {shown(value)}")
        return value

    return AfterValidator(check)


def _variable(value: str) -> str:
    """A secret that stands here by mistake is not repeated."""
    if not re.fullmatch(r"[A-Z_][A-Z0-9_]*", value):
        raise ValueError("should be the name of an environment variable, as REGISTRY_LOGIN")
    return value


def _line(value: str) -> str:
    if not value or value != value.strip() or not value.isprintable():
        raise ValueError(f"should be one line of text without spaces around it, not {shown(value)}")
    return value


def _address(value: str) -> str:
    """Check an address, or each that a folded one stands for."""
    if not all(is_address(one) for one in expand_addresses(value)):
        raise ValueError(f"should be a host name or an IP address, not {shown(value)}")
    return value


def is_address(text: str) -> bool:
    """Return whether a text is one host name or IP address."""
    if ":" in text or re.fullmatch(r"[\d.]+", text):
        try:
            return bool(ip_address(text))
        except ValueError:
            return False
    return NAME.fullmatch(text) is not None


def _absolute(value: str) -> str:
    if not value.startswith("/") or ".." in value.split("/"):
        raise ValueError(f"should be an absolute path without '..', not {shown(value)}")
    return value


def _own_file(value: str) -> str:
    if not value.startswith(("/", "~/")):
        raise ValueError(f"should be an absolute path or begin with ~/, not {shown(value)}")
    return value


def url(*schemes: str) -> AfterValidator:
    """Return the check for a URL with one of these schemes and a host."""
    want = " or ".join(f"{scheme}://HOST:PORT" for scheme in schemes)

    def check(value: str) -> str:
        if not _is_url(value, schemes):
            raise ValueError(f"should be a URL such as {want}, not {shown(value)}")
        return value

    return AfterValidator(check)


def _is_url(value: str, schemes: tuple[str, ...]) -> bool:
    try:
        parts = urlsplit(value)
        return parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number, or a broken IPv6 address
        return False


def _mode(value: str) -> str:
    modes = [mode.value for mode in Mode]
    if value not in modes:
        want = f"{', '.join(modes[:-1])} or {modes[-1]}"
        raise ValueError(f"should be {want}, not {shown(value)}{did_you_mean(value, modes)}")
    return value


def _listed(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _scalar(value: object) -> object:
    if not isinstance(value, str | int | float | bool):
        raise ValueError(f"should be one value, not {shown(value)}")  # noqa: TRY004 - for pydantic
    return value


def _scalar_or_none(value: object) -> object:
    return None if value is None else _scalar(value)


def _keys(form: str, want: str) -> AfterValidator:
    def check(value: dict[str, Any]) -> dict[str, Any]:  # Any: keys only are looked at
        for name in value:
            if not re.fullmatch(form, name):
                raise ValueError(f"{shown(name)} is no {want}")
        return value

    return AfterValidator(check)


def _distinct(value: list[int]) -> list[int]:
    for item in value:
        if value.count(item) > 1:
            raise ValueError(f"names {item} twice")
    return value


Line = Annotated[str, AfterValidator(_line)]
Word = Annotated[str, _matching(r"[\x21-\x7e]+", "one word")]
Name = Annotated[str, _matching(NAME.pattern, "a name of letters, digits, dots and dashes")]
Switch = bool
Count = Annotated[int, Field(ge=1, le=1_000_000_000)]
Gpus = Annotated[
    list[Annotated[int, Field(ge=0, le=255)]], Field(min_length=1), AfterValidator(_distinct)
]
Amount = Annotated[float, Field(gt=0, le=1e12)]
Port = Annotated[int, Field(ge=1, le=65535)]
Seconds = Annotated[float, Field(gt=0, le=3600)]
Address = Annotated[str, AfterValidator(_address)]
HostKey = Annotated[
    str,
    _matching(r"SHA256:[A-Za-z0-9+/]{43}", "a fingerprint SHA256:… as ssh-keygen -lf prints it"),
]
Absolute = Annotated[Line, AfterValidator(_absolute)]
OwnFile = Annotated[Line, AfterValidator(_own_file)]
Registry = Annotated[
    str, _matching(r"[A-Za-z0-9][A-Za-z0-9._-]*(:\d+)?(/[\w./-]+)?", "HOST:PORT without a scheme")
]
Variable = Annotated[str, AfterValidator(_variable)]
Sum = Annotated[str, _matching(r"[0-9a-f]{64}", "64 hexadecimal digits, as sha256sum prints them")]
Fingerprint = Annotated[
    str, _matching(r"[0-9A-F]{40}([0-9A-F]{24})?", "a whole fingerprint: 40 digits in capitals")
]
PackageUrl = Annotated[
    str,
    _matching(r"(https?://[\w.:\[\]-]+/?|file:/)[^\s]*", "a URL: https://HOST/PATH or file:/PATH"),
]
Digest = Annotated[str, _matching(r"sha256:[0-9a-f]{64}", "sha256: and 64 hexadecimal digits")]
PinnedImage = Annotated[
    str, _matching(r"([^\s@]+@)?sha256:[0-9a-f]{64}", "an image by digest: NAME@sha256:…")
]
ModeName = Annotated[str, AfterValidator(_mode)]
Lines = Annotated[list[Line], BeforeValidator(_listed), Field(min_length=1)]
Names = Annotated[list[Name], BeforeValidator(_listed), Field(min_length=1)]
WebUrl = Annotated[str, url("http", "https")]
WebUrls = Annotated[list[WebUrl], BeforeValidator(_listed), Field(min_length=1)]
BusUrl = Annotated[str, url("nats", "tls")]
Knobs = dict[str, Annotated[Scalar, BeforeValidator(_scalar)]]
Flags = Annotated[
    dict[str, Annotated[Scalar | None, BeforeValidator(_scalar_or_none)]],
    _keys(r"-{0,2}[A-Za-z][A-Za-z0-9_.-]*", "flag: write it whole, as in --page-size"),
]
Variables = Annotated[
    dict[str, str], _keys(r"[A-Za-z_][A-Za-z0-9_]*", "name of an environment variable")
]
