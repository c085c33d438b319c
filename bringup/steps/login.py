"""Step kinds: a user who is in a group, and the limits of logins."""

from __future__ import annotations

from ..core.steps import Run, Step
from ..core.words import quote
from .file import text_file

_MEMBER = """
getent passwd {user} >/dev/null || {{ echo "no such user"; exit 0; }}
getent group {group} >/dev/null || {{ echo "no such group"; exit 0; }}
id -nG {user} | tr ' ' '\\n' | grep -qxF {group} && echo member || echo "not a member"
"""


def member_step(user: str, group: str, *, why: str = "") -> Step:
    """Return the step that puts a user into a group; it counts from the next login on."""
    return Step(
        id=f"member:{user}:{group}",
        title=f"put {user} into the group {group}",
        observe=_MEMBER.format(user=quote(user), group=quote(group)),
        wanted="member",
        actions=(Run(("usermod", "-aG", group, user)),),
        why=why,
    )


def limits_step(lines: tuple[str, ...], *, why: str = "") -> Step:
    """Return the step for our own file of limits; /etc/security/limits.conf stays as it is."""
    return text_file(
        "/etc/security/limits.d/90-bringup.conf", "".join(f"{line}\n" for line in lines),
        title="write limits of logins", why=why,
    )  # fmt: skip
