"""What ~/.ssh/config says about a host.

`ssh -G` reads it, so Include, Match and tokens mean what they mean to ssh; it is asked only where
the files hold a word that matters here, for it takes some 5 ms a host.
"""

from __future__ import annotations

import os
import pwd
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeAlias, cast

from ..core.errors import UsageError
from ..core.host import Login

Said: TypeAlias = Mapping[str, tuple[str, ...]]
"""Lower-case keyword to its values."""


def home() -> Path:
    """Return the user's folder as ssh sees it: by the password database, not by $HOME."""
    return Path(pwd.getpwuid(os.getuid()).pw_dir)


_KEYWORDS = re.compile(
    r"^\s*(hostname|user|port|identityfile|identityagent|certificatefile|proxyjump|proxycommand"
    r"|hostkeyalias|userknownhostsfile|globalknownhostsfile|canonical\w+|match)\b[\s=]",
    re.IGNORECASE | re.MULTILINE,
)
_INCLUDE = re.compile(r"^\s*include[\s=]+(.+)$", re.IGNORECASE | re.MULTILINE)


def matters(text: str) -> bool:
    """Say whether a configuration has any word that this tool would act on."""
    return _KEYWORDS.search(text) is not None


def any_matters(chosen: Path | None) -> bool:
    """Say whether any file that ssh would read has a word that matters."""
    return any(map(matters, config_files(chosen)))


def config_files(chosen: Path | None) -> Iterator[str]:
    """Yield the text of each configuration file that ssh would read, included ones as well."""
    if chosen is not None:
        yield from _texts(chosen, home() / ".ssh", 16)
        return
    yield from _texts(home() / ".ssh/config", home() / ".ssh", 16)
    yield from _texts(Path("/etc/ssh/ssh_config"), Path("/etc/ssh"), 16)


def _texts(path: Path, base: Path, depth: int) -> Iterator[str]:
    try:
        text = path.read_text(errors="replace")
    except OSError:
        return
    yield text
    for line in _INCLUDE.findall(text) if depth else ():
        for pattern in shlex.split(line, comments=True):
            where = base / Path(pattern).expanduser()
            for found in sorted(where.parent.glob(where.name)):
                yield from _texts(found, base, depth - 1)


def ask(login: Login, config_file: Path | None) -> Said:
    """Return what the configuration says about a login, from `ssh -G`, else from paramiko."""
    ssh = shutil.which("ssh")
    if ssh is None:
        return _ask_paramiko(login, config_file)
    words = [ssh, "-G"]
    words += ["-F", str(config_file)] if config_file else []
    words += ["-l", login.user] if login.user else []
    words += ["-p", str(login.port)] if login.port != 22 else []
    done = subprocess.run(
        [*words, "--", login.address],
        capture_output=True, text=True, check=False, timeout=30, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    if done.returncode != 0:
        raise UsageError(
            f"cannot read the SSH configuration for {login.address}",
            said=done.stderr.strip(),
            remedy=f"see ssh -G {shlex.quote(login.address)}, and correct ~/.ssh/config",
        )
    return parse_answer(done.stdout)


def parse_answer(text: str) -> Said:
    """Return the values of `ssh -G` by keyword."""
    found: dict[str, tuple[str, ...]] = {}
    for line in text.splitlines():
        key, _, value = line.partition(" ")
        found[key] = (*found.get(key, ()), value)
    return found


def _ask_paramiko(login: Login, config_file: Path | None) -> Said:
    from paramiko import SSHConfig

    path = config_file or home() / ".ssh/config"
    text = path.read_text(errors="replace") if path.exists() else ""
    if _INCLUDE.search(text):
        raise UsageError(
            f"cannot follow Include in {path}: no ssh client is installed here",
            remedy="install openssh-client here, or write its words into hosts.yml",
        )
    found = cast("dict[str, str | list[str]]", SSHConfig.from_text(text).lookup(login.address))
    return {k: (v,) if isinstance(v, str) else tuple(v) for k, v in found.items()}
