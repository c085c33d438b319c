"""Run the project's own proofs: format, lint, types, tests, on a machine made ready for them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from ..core.errors import Exit, UsageError

ROOT = Path(__file__).parents[2]

PACKAGES = {
    "sshd": "openssh-server",
    "ssh": "openssh-client",
    "dockerd": "docker.io",
    "ip": "iproute2",
    "iptables": "iptables",
    "busybox": "busybox-static",
    "zstd": "zstd",
    "skopeo": "skopeo",
    "docker-registry": "docker-registry",
    "podman": "podman",
    "buildah": "buildah",
    "etcd": "etcd-server",
    "etcdctl": "etcd-client",
    "nats-server": "nats-server",
    "dash": "dash",
    "sudo": "sudo",
    "pgrep": "procps",
    "xz": "xz-utils",
    "kubectl": "kubernetes-client",
    "gpg": "gnupg",
    "dnf": "dnf",
    "/usr/lib/python3/dist-packages/dnf-plugins/versionlock.py": "dnf-plugins-core",
    "createrepo_c": "createrepo-c",
    "rpmbuild": "rpm",
}
"""A program or file that tests use, and the Debian package that brings it."""

WORKERS = "4"
"""Tests mostly wait for hosts and servers: two for each of two cores keep them busy."""

PARTS: dict[str, tuple[tuple[str, ...], ...]] = {
    "lint": (("ruff", "format", "--check", "--quiet", "."), ("ruff", "check", "--quiet", ".")),
    "types": (("mypy",),),
    "tests": (("python", "-m", "pytest", "-q", "-n", WORKERS, "--dist", "loadgroup"),),
}


def search_path() -> str:
    """Return PATH with this Python's tools first and, last, where Debian keeps servers."""
    own = Path(sys.executable).parent
    return f"{own}:{os.environ.get('PATH', os.defpath)}:/usr/local/sbin:/usr/sbin:/sbin"


def has(name: str) -> bool:
    """Whether this machine has a program, or a file by its whole path."""
    return Path(name).is_file() if name[0] == "/" else bool(shutil.which(name, path=search_path()))


def missing() -> tuple[str, ...]:
    """Return the programs and files that tests use and this machine lacks."""
    return tuple(name for name in PACKAGES if not has(name))


def prove(say: Callable[[str], None], *, only: str, install: bool, select: str) -> Exit:
    """Run the parts in order; stop at the first that fails. Raises UsageError for no such part."""
    if only and only not in PARTS:
        raise UsageError(f"cannot run {only!r}", remedy=f"choose one of: {', '.join(PARTS)}")
    if only in ("", "tests"):
        prepare(say, install=install)
    environment = {**os.environ, "PATH": search_path()}
    for name in [only] if only else list(PARTS):
        for words in PARTS[name]:
            more = ("-k", select) if name == "tests" and select else ()
            say(f"{name}: {' '.join((*words, *more))}")
            if subprocess.run((*words, *more), cwd=ROOT, env=environment, check=False).returncode:
                return Exit.FAILED
    return Exit.DONE


def prepare(say: Callable[[str], None], *, install: bool) -> None:
    """Install what tests need where that is possible; say what will be left out where it is not."""
    if os.geteuid() != 0:
        say("left out: tests that need root (namespaces, mounts, a container engine)")
    names = missing()
    if not names:
        return
    packages = sorted({PACKAGES[name] for name in names})
    if install and os.geteuid() == 0 and shutil.which("apt-get"):
        say(f"installing for the tests: {' '.join(packages)}")
        _apt("update", "-q")
        _apt("install", "-q", "-y", "--no-install-recommends", *packages)
        return
    say(f"left out: tests that need {', '.join(names)}, which this machine lacks")
    say(f"  to run them too, as root: apt-get install {' '.join(packages)}")


def _apt(*words: str) -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    lock = ("-o", "DPkg::Lock::Timeout=300")
    done = subprocess.run(
        ("apt-get", *lock, *words), env=environment, check=False, capture_output=True
    )
    if done.returncode:
        said = (done.stdout + done.stderr).decode(errors="replace")
        raise UsageError(
            f"cannot install packages for the tests: apt-get exit {done.returncode}",
            said=said,
            remedy="mend what apt-get says, or run with --no-install",
        )
