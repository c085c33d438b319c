"""What the login may do on the host, and how its key was trusted."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..core.facts import Facts, Probe, looked
from ..core.reading import Known, Reading, Unknown
from ..core.remote import Trusted
from ..core.script import Section


@dataclass(frozen=True, slots=True)
class Access:
    """`sudo`: "none needed", "passwordless", "asks", "refused", "missing", or "" (not told)."""

    user: str
    uid: int | None = None
    groups: tuple[str, ...] = ()
    sudo: str = ""
    said: str = ""

    @property
    def is_root(self) -> bool:
        return self.uid == 0


@dataclass(frozen=True, slots=True)
class HostKey:
    """How the SSH key of the host was trusted: "pinned", "certified", "known", "first use"."""

    trust: str
    fingerprint: str = ""


def trusting(facts: Facts, trusted: Trusted | None) -> Facts:
    """Return facts that know how the key was trusted; no section of a host's answer tells it."""
    if trusted is None:
        return facts
    key = HostKey(trusted.by, trusted.fingerprint)
    return facts.replace(HostKey, Known(key, f"{key.trust}: {key.fingerprint}"))


SCRIPT = r"""
printf 'id %s\n' "$(id)"
printf 'groups %s\n' "$(id -Gn)"
if [ "$(id -u)" != 0 ]; then
  if tool sudo >/dev/null; then
    t=$(ask sudo -n true 2>&1); printf 'sudo %s %s\n' $? "$t"
  else echo 'sudo 127 sudo: not found'; fi
fi
exit 0
"""


def parse(section: Section) -> Reading[Access]:
    """Return what the login may do."""
    answer = looked(section, absent=())
    if not isinstance(answer, Known):
        return answer
    access = read_id(section.text)
    if access is None:
        return Unknown("id told no user", section.first)
    found = re.search(r"(?m)^sudo (\d+) (.*)$", section.text)
    sudo = read_sudo(int(found[1]), found[2]) if found else ""
    if access.is_root:
        sudo = "none needed"
    names = re.search(r"(?m)^groups (.+)$", section.text)
    groups = tuple(names[1].split()) if names else access.groups
    line = f"{access.user} in {' '.join(groups) or 'no group'}, sudo: {sudo or 'not told'}"
    return Known(Access(access.user, access.uid, groups, sudo, found[2] if found else ""), line)


def read_id(text: str) -> Access | None:
    """Return what `id` tells, or None where it told nothing."""
    user = re.search(r"uid=(\d+)(?:\(([^)]+)\))?", text)
    if user is None:
        return None
    groups = re.search(r"groups=(\S+)", text)
    names = re.findall(r"\d+\(([^)]+)\)", groups[1]) if groups else []
    return Access(user[2] or user[1], int(user[1]), tuple(names))


def read_sudo(code: int, text: str) -> str:
    """Return what `sudo -n true` means."""
    if code == 0:
        return "passwordless"
    if code == 127 or "not found" in text:
        return "missing"
    if "password is required" in text or "terminal is required" in text:
        return "asks"
    return "refused" if "not in the sudoers" in text or "not allowed" in text else ""


PROBE = Probe("access", Access, SCRIPT, parse)
