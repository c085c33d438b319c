"""What the command lines of running workers tell: whether each is good, and both fit each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..core.host import Deployment
from ..core.rules import Level
from ..engines.collect import engines
from ..engines.engine import CommandLine
from ..probes.serving import Serving
from .deployment import SHARED_FLAGS

Words = tuple[str, ...]


def sides_of(serving: Serving) -> Mapping[str, Words]:
    """Return the command lines of a pair's two sides, as far as they were told."""
    told = {"prefill": serving.prefill_command, "decode": serving.decode_command}
    return {side: words for side, words in told.items() if words}


def value_of(words: Words, flag: str) -> str:
    """Return what follows a flag, or stands behind its equals sign; "" where it is not given."""
    for place, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name == flag:
            return value if equals else next(iter(words[place + 1 : place + 2]), "")
    return ""


def differences(serving: Serving) -> Iterator[str]:
    """Yield the flags that both sides must give alike and do not."""
    lines = sides_of(serving)
    for flag in SHARED_FLAGS if len(lines) > 1 else ():
        said = {side: value_of(words, flag) for side, words in lines.items()}
        if len(set(said.values())) > 1:
            yield f"{flag}: " + ", ".join(f"{s} says {v or 'nothing'}" for s, v in said.items())


def same_mode(serving: Serving) -> str:
    """Return the mode that both sides run in, "" where they differ or were not both told."""
    modes = [value_of(words, "--disaggregation-mode") for words in sides_of(serving).values()]
    return modes[0] if len(modes) > 1 and len(set(modes)) == 1 else ""


def refused(serving: Serving, deployment: Deployment) -> Iterator[str]:
    """Yield what the engine refuses in each command line, as far as its version is known."""
    engine = engines().get(deployment.engine)
    lines = sides_of(serving) or ({"worker": serving.command} if serving.command else {})
    for side, words in lines.items():
        if engine is None or words[1:2] != ("-m",):
            continue
        found = engine.check(CommandLine(words, program=3), engine.versions(deployment))
        grave = (one for one in found if one.level is Level.BLOCK)
        yield from (f"{side}: {'; '.join(one.evidence)}: {one.remedy}" for one in grave)


def unread_variables(env: Mapping[str, str], deployment: Deployment) -> Iterator[str]:
    """Yield the variables that no part of this version of the engine reads, and what does it."""
    engine = engines().get(deployment.engine)
    if engine is None:
        return
    found = engine.check(CommandLine((), env=env), engine.versions(deployment))
    told = (one for one in found if one.id in ("variable-not-read", "variable-unknown"))
    yield from (f"{'; '.join(one.evidence)}: {one.remedy}" for one in told)
