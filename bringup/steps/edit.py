"""Step kind: a file that others write too, of which only our part is changed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from ..core.steps import FileLook, Step
from .file import observing

START, END = "# bringup: begin {name}", "# bringup: end {name}"


def edited_file(
    path: str, edit: Callable[[str], str], *, title: str, why: str = "", risk: str = "safe"
) -> Step:
    """Return the step that edits a file; mode and owner stay. A new one is root's, mode 644."""
    look = FileLook(path, with_owner=True)
    return Step(
        f"file:{path}", title, observing(look), "edited", (), why=why, edit=edit, risk=risk,
        look=look,
    )  # fmt: skip


def marked_block(name: str, text: str) -> Callable[[str], str]:
    """Return the edit that puts a block of lines between our two marks, and touches nothing else.

    An empty text takes the block out. The edit raises ValueError where a mark stands alone.
    """
    start, end = START.format(name=name), END.format(name=name)
    block = f"{start}\n{text.rstrip()}\n{end}\n" if text.strip() else ""

    def edit(old: str) -> str:
        lines = old.splitlines(keepends=True)
        bare = [line.strip() for line in lines]
        if (bare.count(start), bare.count(end)) not in ((0, 0), (1, 1)):
            raise ValueError(f"the marks of {name!r} do not stand in pairs")
        if start not in bare:
            gap = "\n" if old and not old.endswith("\n") and block else ""
            return f"{old}{gap}{block}"
        first, last = bare.index(start), bare.index(end)
        if last < first:
            raise ValueError(f"the marks of {name!r} stand in the wrong order")
        return "".join(lines[:first]) + block + "".join(lines[last + 1 :])

    return edit


def mount_line(at: str, line: str) -> Callable[[str], str]:
    """Return the edit of fstab that mounts a place by our line, in a block of its own.

    The edit raises ValueError where another line mounts the place: systemd takes the first of two.
    """
    put = marked_block(f"mount {at}", line)
    take_out = marked_block(f"mount {at}", "")

    def edit(old: str) -> str:
        for theirs in take_out(old).splitlines():
            fields = theirs.split()
            if len(fields) > 1 and not theirs.lstrip().startswith("#") and _same(fields[1], at):
                raise ValueError(f"a line mounts {at} already, and would win over ours: {theirs}")
        return put(old)

    return edit


def _same(one: str, other: str) -> bool:
    return (one.rstrip("/") or "/") == (other.rstrip("/") or "/")


MARK = "\ufeff"
"""A byte order mark, which docker reads over."""


def json_keys(wanted: Mapping[str, Any]) -> Callable[[str], str]:  # JSON is what it is
    """Return the edit that sets keys of a JSON object, deep; other keys and their order stay.

    The text stays as it is, to the byte, where all keys are set already. The edit raises
    ValueError for a text that is no JSON object, or has a key twice: one of its values would go.
    """

    def edit(old: str) -> str:
        text = old.removeprefix(MARK)
        document = _object(text)
        new = _merged(document, wanted)
        if new == document:
            return old
        return old[: len(old) - len(text)] + json.dumps(new, indent=2, ensure_ascii=False) + "\n"

    return edit


def _object(text: str) -> dict[str, Any]:
    try:
        document = json.loads(text, object_pairs_hook=_once) if text.strip() else {}
    except ValueError as error:
        raise ValueError(f"it is no JSON: {error}") from error
    if not isinstance(document, dict):
        raise ValueError("it is no JSON object")  # noqa: TRY004 - what an edit raises
    return document


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    twice = next((key for key in keys if keys.count(key) > 1), None)
    if twice is not None:
        raise ValueError(f"the key {twice!r} stands in it twice")
    return dict(pairs)


def _merged(old: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    new = dict(old)
    for key, value in wanted.items():
        mine = new.get(key)
        both = isinstance(value, Mapping) and isinstance(mine, Mapping)
        new[key] = _merged(mine, value) if both else value  # type: ignore[arg-type]
    return new


def docker_daemon(wanted: Mapping[str, Any], *, why: str = "") -> Step:
    """Return the step that sets keys of docker's daemon.json; docker reads it at its next start."""
    return edited_file(
        "/etc/docker/daemon.json", json_keys(wanted),
        title=f"set {', '.join(sorted(wanted))} in /etc/docker/daemon.json", why=why,
    )  # fmt: skip
