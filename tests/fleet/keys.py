"""Keys and certificates for tests, by the real ssh-keygen."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.needed import require


def make_key(path: Path, *, kind: str = "ed25519", passphrase: str = "") -> Path:
    """Make a key pair unless it is there; return the private file."""
    if not path.exists():
        keygen("-t", kind, "-N", passphrase, "-C", path.name, "-f", str(path))
    return path


def public(key: Path) -> str:
    """Return the public line of a key."""
    return Path(f"{key}.pub").read_text().strip()


def fingerprint(key: Path) -> str:
    """Return ``SHA256:…`` of a key."""
    return keygen("-lf", f"{key}.pub").split()[1]


def sign_user(authority: Path, key: Path, *principals: str, validity: str = "-1h:+1h") -> Path:
    """Make a user certificate beside a key; return its file."""
    keygen("-s", str(authority), "-I", "user", "-n", ",".join(principals), "-V", validity,
           f"{key}.pub")  # fmt: skip
    return Path(f"{key}-cert.pub")


def sign_host(authority: Path, key: Path, *names: str, validity: str = "-1h:+1h") -> Path:
    """Make a host certificate beside a key; return its file."""
    keygen("-s", str(authority), "-I", "host", "-h", "-n", ",".join(names), "-V", validity,
           f"{key}.pub")  # fmt: skip
    return Path(f"{key}-cert.pub")


def keygen(*words: str) -> str:
    require("ssh")
    done = subprocess.run(
        ["ssh-keygen", "-q", *words], check=True, capture_output=True, text=True, timeout=300
    )
    return done.stdout
