"""What NVIDIA's own diagnosis (DCGM) found, where somebody ran it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..core.reading import Known, Reading, Unknown


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Tests by name that failed or warned, each with what DCGM says of it."""

    failed: tuple[str, ...] = ()
    warned: tuple[str, ...] = ()


def read(text: str) -> Reading[Diagnosis]:
    """Read the table of `dcgmi diag` or `dcgmi health -c`: a name, a word, more lines below."""
    rows = re.findall(r"(?m)^\|([^|]*)\|([^|]*)\|\s*$", text)
    found: list[tuple[str, str, list[str]]] = []
    for left, right in ((left.strip(" ->"), right.strip()) for left, right in rows):
        if left:
            found.append((left, right, []))
        elif right and found:
            found[-1][2].append(right)
    if not any(_word(word) for _, word, _ in found):
        return Unknown("dcgmi told no result", text.strip().partition("\n")[0])
    told = [(_word(word), _line(name, more)) for name, word, more in found]
    bad = tuple(line for word, line in told if word == "fail")
    weak = tuple(line for word, line in told if word == "warn")
    line = (bad or weak or ("dcgmi: nothing found",))[0]
    return Known(Diagnosis(bad, weak), line)


def _word(text: str) -> str:
    """Return pass, fail or warn; "" where a cell holds something else."""
    word = text.partition(" ")[0].lower()
    return {"pass": "pass", "healthy": "pass", "fail": "fail", "failure": "fail",
            "warn": "warn", "warning": "warn"}.get(word, "")  # fmt: skip


def _line(name: str, more: list[str]) -> str:
    return f"dcgmi: {name}: {' '.join(more)}" if more else f"dcgmi: {name}"
