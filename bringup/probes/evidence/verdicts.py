"""How a command ended, where the words behind it tell: ``… && echo yes || echo no``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from .output import Output


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is printed after success and after failure; `number` is a pattern of ``echo $?``."""

    success: str = ""
    failure: str = ""
    number: str = ""


def verdict_of(rest: Sequence[tuple[str, list[str]]]) -> Verdict | None:
    """Return what the commands behind one, with their joints, print of how it ended."""
    said = [(joint, _echoed(words)) for joint, words in rest]
    if any(text is None for _, text in said):
        return None
    texts = [text or "" for _, text in said]
    joints = [joint for joint, _ in said]
    if joints == ["&&", "||"] and "" not in texts and texts[0] != texts[1]:
        return Verdict(texts[0], texts[1])
    if joints == ["||"] and texts[0]:
        return Verdict(failure=texts[0])
    if joints == [";"] and texts[0].count("$?") == 1:
        return Verdict(number=re.escape(texts[0]).replace(re.escape("$?"), r"(\d{1,3})"))
    return None


def _echoed(words: Sequence[str]) -> str | None:
    return " ".join(words[1:]).strip() if words[:1] == ["echo"] and "-n" not in words else None


def settled(verdict: Verdict, output: Output) -> Output | None:
    """Return the output with its own exit code and without the words; None where they are odd."""
    *before, last = output.stdout.rstrip("\n").split("\n")
    text = "\n".join(before)
    if verdict.number:
        found = re.fullmatch(verdict.number, last.strip())
        return replace(output, code=int(found[1]), stdout=text) if found else None
    if last.strip() == verdict.failure:
        return replace(output, code=1, stdout=text)
    if verdict.success:
        is_success = last.strip() == verdict.success
        return replace(output, code=0, stdout=text) if is_success else None
    return output if output.code == 0 else None
