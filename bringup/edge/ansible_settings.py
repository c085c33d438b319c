"""What Ansible's connection variables mean in our settings, and what has no place here.

Sources: https://docs.ansible.com/ansible/latest/collections/ansible/builtin/ssh_connection.html and
ssh_config(5) for the options inside `ansible_ssh_common_args`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from pydantic import ValidationError

from .ansible_read import Variables, Vault
from .forms import is_address
from .schema import HostEntry

_SECRET = re.compile(r"pass(word|wd|phrase)?$|secret|token|vault|private_key$|_key$", re.IGNORECASE)
_NOT_NEEDED = re.compile(
    r"ansible_(python_interpreter|group_priority|shell_type|remote_tmp|pipelining|ssh_pipelining"
    r"|control_path|ssh_executable|scp_executable|sftp_executable|ssh_transfer_method|facts.*"
    r"|become_flags|become_exe|ssh_retries|display_.*|version)"
)
SSH = ("ssh", "smart", "paramiko", "paramiko_ssh", "ansible.builtin.ssh")


@dataclass(slots=True)
class Carried:
    """Settings of ours by key, and notes on what they leave out, by the variable's name."""

    settings: dict[str, Any] = field(default_factory=dict)  # Any: as our schema has them
    notes: dict[str, str] = field(default_factory=dict)


Taker: TypeAlias = Callable[[Carried, str, object], None]
"""Takes what a variable says, or notes why not; given the variable's name and value."""


def carry(variables: Variables) -> Carried:
    """Return our settings for a host's variables. No value of a secret goes anywhere."""
    carried = Carried()
    for name in sorted(variables, key=_general_first):
        value = variables[name]
        if isinstance(value, Vault) or _SECRET.search(name):
            carried.notes[name] = _NO_SECRETS
        elif isinstance(value, str) and "{{" in value:
            carried.notes[name] = "holds a template, which is not worked out here: write its value"
        elif name in _MEANINGS:
            _MEANINGS[name](carried, name, value)
        elif not _NOT_NEEDED.fullmatch(name):
            carried.notes[name] = "has no meaning here"
    return _fitting(carried)


def _fitting(carried: Carried) -> Carried:
    """Return what fits our schema; what does not is noted, as it may be a secret gone astray."""
    notes = dict(carried.notes)
    settings = {}
    for key, value in carried.settings.items():
        try:
            HostEntry.model_validate({key: value})
        except ValidationError:
            notes[key] = "would be no good here: write it by hand"
        else:
            settings[key] = value
    return Carried(settings, notes)


_NO_SECRETS = "is a secret: log in by key, and let sudo work without a password"


def _general_first(name: str) -> tuple[bool, str]:
    """Arguments of ssh come first, as Ansible's own variables overrule them."""
    return not name.endswith("_args"), name


def _address(carried: Carried, name: str, value: object) -> None:
    if is_address(str(value)):
        carried.settings["address"] = str(value)
    elif value not in (None, ""):
        carried.notes[name] = "is no host name or IP address"


def _text(key: str) -> Taker:
    def put(carried: Carried, _: str, value: object) -> None:
        if value not in (None, ""):
            carried.settings[key] = str(value)

    return put


def _number(key: str, low: float, high: float) -> Taker:
    def put(carried: Carried, name: str, value: object) -> None:
        text = str(value)
        if re.fullmatch(r"\d{1,6}", text) and low <= int(text) <= high:
            carried.settings[key] = int(text)
        else:
            carried.notes[name] = f"is no number from {low:g} to {high:g}"

    return put


def _own_file(key: str) -> Taker:
    def put(carried: Carried, name: str, value: object) -> None:
        if str(value).startswith(("/", "~/")):
            carried.settings[key] = str(value)
        else:
            carried.notes[name] = f"is a relative path: write {key} with the whole one"

    return put


def _become(carried: Carried, _: str, value: object) -> None:
    if str(value).lower() in ("true", "yes", "on", "1"):
        carried.settings["sudo"] = True


def _only(*fine: str) -> Taker:
    def look(carried: Carried, name: str, value: object) -> None:
        if str(value) not in fine:
            carried.notes[name] = f"is not {' or '.join(fine)}, the only one used here"

    return look


def _arguments(carried: Carried, name: str, value: object) -> None:
    """Take the settings out of arguments for ssh."""
    try:
        words = shlex.split(str(value or ""))
    except ValueError:
        carried.notes[name] = "does not parse as a shell would"
        return
    for option, argument in _options(words):
        if option.lower() in _OPTIONS:
            _OPTIONS[option.lower()](carried, f"{name} {option}", argument)
        elif option.lower() not in _IGNORED:
            carried.notes[f"{name} {option}"] = "has no setting here: put it into ~/.ssh/config"


_LETTERS = {"-J": "ProxyJump", "-i": "IdentityFile", "-p": "Port", "-l": "User"}
_IGNORED = ("controlmaster", "controlpersist", "controlpath", "-q", "-c", "batchmode", "loglevel")


def _options(words: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the options of an ssh command line by their names in ssh_config."""
    ahead = iter(words)
    for word in ahead:
        if word[:2] in ("-o", *_LETTERS):
            rest = word[2:] or next(ahead, "")
            name, _, value = re.sub(r"\s*[=\s]\s*", "=", rest, count=1).partition("=")
            yield (name, value) if word[:2] == "-o" else (_LETTERS[word[:2]], rest)
        else:
            yield word, ""


def _jump(carried: Carried, _: str, value: str) -> None:
    if value.lower() != "none":
        carried.settings["gateway"] = [_gateway(jump) for jump in value.split(",") if jump]


def _gateway(jump: str) -> str:
    """Return a jump as we write it; a bare name stays bare, and may be a host of the inventory."""
    return jump.removeprefix("ssh://").rstrip("/")


def _proxy(carried: Carried, name: str, value: str) -> None:
    """Take the jump out of ``ssh -W %h:%p [-q] [-p PORT] [-i FILE] USER@HOST``."""
    try:
        words = shlex.split(value)
    except ValueError:
        words = []
    found, port, user = "", "", ""
    ahead = iter(words[1:] if words[:1] == ["ssh"] and "-W" in words else ())
    for word in ahead:
        if word in ("-W", "-o", "-i"):
            next(ahead, "")
        elif word in ("-p", "-l"):
            port, user = (next(ahead, ""), user) if word == "-p" else (port, next(ahead, ""))
        elif not word.startswith("-") and not found:
            found = word
    if not found:
        carried.notes[name] = "is no plain jump (ssh -W %h:%p HOST): put it into ~/.ssh/config"
        return
    at = f"{user}@{found}" if user else found
    carried.settings["gateway"] = [f"{at}:{port}" if port else at]


def _host_key_checking(carried: Carried, name: str, value: str) -> None:
    if value.lower() not in ("yes", "ask", "accept-new"):
        carried.notes[name] = "left out: host keys are always checked"


_OPTIONS: Mapping[str, Callable[[Carried, str, str], None]] = {
    "proxyjump": _jump,
    "proxycommand": _proxy,
    "stricthostkeychecking": _host_key_checking,
    "userknownhostsfile": _host_key_checking,
    "connecttimeout": _number("connect_s", 1, 3600),
    "serveraliveinterval": _number("keepalive_s", 1, 3600),
    "identityfile": _own_file("key_file"),
    "certificatefile": _own_file("certificate_file"),
    "port": _number("port", 1, 65535),
    "user": _text("user"),
}

_MEANINGS: Mapping[str, Taker] = {
    **dict.fromkeys(("ansible_host", "ansible_ssh_host"), _address),
    **dict.fromkeys(("ansible_port", "ansible_ssh_port"), _number("port", 1, 65535)),
    **dict.fromkeys(("ansible_user", "ansible_ssh_user"), _text("user")),
    **dict.fromkeys(
        ("ansible_ssh_private_key_file", "ansible_private_key_file"), _own_file("key_file")
    ),
    **dict.fromkeys(("ansible_timeout", "ansible_ssh_timeout"), _number("connect_s", 1, 3600)),
    **dict.fromkeys(
        ("ansible_ssh_args", "ansible_ssh_common_args", "ansible_ssh_extra_args"), _arguments
    ),
    "ansible_become": _become,
    "ansible_become_method": _only("sudo", "ansible.builtin.sudo"),
    "ansible_become_user": _only("root"),
    "ansible_connection": _only(*SSH),
}
