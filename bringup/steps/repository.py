"""Step kind: a package repository of the host's manager, with the key that signs it."""

from __future__ import annotations

from dataclasses import replace

from ..core.host import Repository
from ..core.steps import Step, Write
from ..core.words import HostPath, quote
from .file import file_step, text_file

# A host that has the repository by another file keeps that one: apt refuses two keys for one place.
_HAS = r"""
for f in "$R"/etc/apt/sources.list "$R"/etc/apt/sources.list.d/* "$R"/etc/yum.repos.d/*; do
  case $f in */bringup-{name}.*) continue ;; esac
  [ -f "$f" ] && grep -v '^#' "$f" | grep -qF {uri} && {{ echo {wanted}; exit 0; }}
done
"""


def repository_steps(
    repository: Repository, manager: str = "apt", *, why: str = ""
) -> tuple[Step, ...]:
    """Return the steps for the key, where there is a file of one, and for the source it signs.

    `manager` is ``apt`` or ``dnf``.
    """
    key = _key_place(repository, manager)
    path, text = _apt(repository, key) if manager == "apt" else _dnf(repository, key)
    source = text_file(path, text, title=f"add the repository {repository.name}", why=why)
    write = Write(HostPath(key), repository.key, 0o644)
    keep = replace(
        file_step(write, title=f"keep the key of {repository.name}", why=why), content=None
    )
    steps = (keep, source) if key else (source,)
    return tuple(_unless_there(step, repository) for step in steps)


def _unless_there(step: Step, repository: Repository) -> Step:
    has = _HAS.format(
        name=repository.name, uri=quote(repository.uri.rstrip("/")), wanted=quote(step.wanted)
    )
    return replace(step, observe=has + step.observe, look=None)


def _key_place(repository: Repository, manager: str) -> str:
    if not repository.key:
        return ""
    if manager == "dnf":
        return f"/etc/pki/rpm-gpg/RPM-GPG-KEY-bringup-{repository.name}"
    form = "asc" if repository.key.lstrip().startswith(b"-----") else "gpg"
    return f"/etc/apt/keyrings/bringup-{repository.name}.{form}"


def _apt(repository: Repository, key: str) -> tuple[str, str]:
    components = " ".join(repository.components)
    lines = [
        "Types: deb",
        f"URIs: {repository.uri}",
        f"Suites: {' '.join(repository.suites or ('./',))}",
        *([f"Components: {components}"] if components else []),
        f"Signed-By: {key or repository.fingerprint}",
    ]
    return f"/etc/apt/sources.list.d/bringup-{repository.name}.sources", "\n".join(lines) + "\n"


def _dnf(repository: Repository, key: str) -> tuple[str, str]:
    lines = [
        f"[bringup-{repository.name}]",
        f"name={repository.name}",
        f"baseurl={repository.uri}",
        "enabled=1",
        "gpgcheck=1",
        *([f"gpgkey=file://{key}"] if key else []),
    ]
    return f"/etc/yum.repos.d/bringup-{repository.name}.repo", "\n".join(lines) + "\n"
