"""What a row of quirks may look for in a command line: each returns the words that it saw."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

from .words import Words

Test: TypeAlias = Callable[[Words], tuple[str, ...]]


def has(flag: str, value: str | None = None) -> Test:
    """See a flag, or a flag with this value."""

    def test(words: Words) -> tuple[str, ...]:
        given = words.value(flag)
        if given is None or (value is not None and given != value):
            return ()
        return (f"{flag} {given}".strip(),)

    return test


def lacks(*flags: str) -> Test:
    """See that none of these flags is there."""

    def test(words: Words) -> tuple[str, ...]:
        return () if any(map(words.has, flags)) else (f"no {' or '.join(flags)}",)

    return test


def above(flag: str, least: int) -> Test:
    """See a flag with a number above `least`."""

    def test(words: Words) -> tuple[str, ...]:
        given = words.value(flag) or ""
        return (f"{flag} {given}",) if given.isdecimal() and int(given) > least else ()

    return test


def no_variable(name: str, value: str) -> Test:
    """See that a variable does not have this value."""

    def test(words: Words) -> tuple[str, ...]:
        return () if words.variable(name) == value else (f"{name} is not {value}",)

    return test


def in_json(flag: str, key: str) -> Test:
    """See a key in a flag's JSON text."""

    def test(words: Words) -> tuple[str, ...]:
        try:
            data = json.loads(words.value(flag) or "null")
        except ValueError:
            return ()
        return (f"{flag} has {key}",) if isinstance(data, Mapping) and key in data else ()

    return test


def broken_json(words: Words) -> tuple[str, ...]:
    """See values that begin as JSON and are none: a shell took the quotes, or they are missing."""
    return tuple(
        f"{given.name} {given.value}"
        for given in words.given
        if given.value.startswith("{") and not _is_json(given.value)
    )


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def variable(name: str, pattern: str) -> Test:
    """See a variable whose text matches a pattern somewhere."""
    compiled = re.compile(pattern)

    def test(words: Words) -> tuple[str, ...]:
        text = words.variable(name)
        return (f"{name}={text}",) if text is not None and compiled.search(text) else ()

    return test


def variable_above(name: str, most: int) -> Test:
    """See a variable that holds a number above `most`."""

    def test(words: Words) -> tuple[str, ...]:
        text = words.variable(name) or ""
        return (f"{name}={text}",) if text.isdecimal() and int(text) > most else ()

    return test


def one_port_twice(words: Words) -> tuple[str, ...]:
    """See a port that two settings of one worker name."""
    flags = ("--port", "--disaggregation-bootstrap-port")
    names = ("DYN_SYSTEM_PORT", "DYN_TCP_RPC_PORT", "VLLM_NIXL_SIDE_CHANNEL_PORT")
    given = {**{flag: words.value(flag) for flag in flags}, **{n: words.variable(n) for n in names}}
    ports = [(port, name) for name, port in given.items() if port and port != "0"]
    twice = {port for port, _ in ports if [p for p, _ in ports].count(port) > 1}
    return tuple(f"{name} {port}" for port, name in ports if port in twice)


def every(*tests: Test) -> Test:
    """See what all tests see, or nothing."""

    def test(words: Words) -> tuple[str, ...]:
        seen = [one(words) for one in tests]
        return tuple(line for lines in seen for line in lines) if all(seen) else ()

    return test


def some(*tests: Test) -> Test:
    """See what any of the tests sees."""

    def test(words: Words) -> tuple[str, ...]:
        return tuple(line for one in tests for line in one(words))

    return test
