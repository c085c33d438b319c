"""What package managers told of the parts that a GPU host needs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..fabric import FabricManager
from ..kernel import Modules
from .asked import Asked, Output
from .piece import Piece, Readers, absent, known

_RPM = r"(?m)^([a-z][\w.+-]*?)-(\d[\w.]*-[\w.]+)\.(?:x86_64|aarch64|noarch)$"
"""``NAME-VERSION-RELEASE.ARCH``, as `rpm -q` prints it."""

_APT = r"(?m)^([a-z][\w.+-]*)/\S*,now (\d\S*) "
"""``NAME/SUITE,now VERSION ARCH``, as `apt list --installed` prints it."""

_DNF = r"(?m)^([a-z][\w.+-]*)\.(?:x86_64|aarch64|noarch)\s+(?:\d+:)?(\d\S*)\s"
"""``NAME.ARCH VERSION REPOSITORY``, as `dnf list installed` prints it."""


def read_packages(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `dpkg -l NAME`, `rpm -q NAME`, `apt list --installed`: what the GPU stack needs."""
    del asked
    text = output.text
    rows = re.findall(r"(?m)^(?:[ihr][i ]\s+)?([a-z][\w.+-]+?)(?::\w+)?[\s/]+(\d\S*)", text)
    have = dict(rows + [row for form in (_RPM, _APT, _DNF) for row in re.findall(form, text)])
    for name, version in have.items():
        if name.startswith("nvidia-fabricmanager"):
            yield known(FabricManager(package=version), f"{name} {version}")
        elif name == "nvlsm":
            yield known(FabricManager(nvlsm=True), f"{name} {version}")
    for name in re.findall(
        r"no packages found matching (\S+)|package (\S+) is not installed", text
    ):
        yield from _missing_package("".join(name), output.line)


def read_policy(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `apt-cache policy NAME`: what is installed, or ``(none)``."""
    del asked
    for name, version in re.findall(r"(?m)^([a-z]\S*):\n\s+\S+: (\S+)", output.stdout):
        if version == "(none)":
            yield from _missing_package(name, f"{name}: not installed")
        elif name.startswith("nvidia-fabricmanager"):
            yield known(FabricManager(package=version), f"{name} {version}")


def _missing_package(name: str, line: str) -> Iterator[Piece]:
    if name == "nvlsm":
        yield known(FabricManager(nvlsm=False), line)
    elif name.startswith("linux-modules-extra"):
        extra = dict.fromkeys(("mlx5_ib", "ib_umad"), False)
        yield known(Modules((), installed=extra, whole=False), line)
    elif name.startswith("nvidia-fabricmanager"):
        yield absent(FabricManager, line)


READERS: Readers = {
    **dict.fromkeys(("dpkg", "dpkg-query", "rpm", "apt", "dnf", "yum"), read_packages),
    "apt-cache": read_policy,
}
