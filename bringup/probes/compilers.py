"""What run-time compilation needs besides nvcc: a C compiler, ninja, Python's headers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..core.facts import Probe, looked
from ..core.reading import Known, Reading, Unknown
from ..core.script import Section

TOOLS = ("gcc", "g++", "clang", "cc", "ninja", "ptxas", "python3", "Python.h")


@dataclass(frozen=True, slots=True)
class Compilers:
    """Whether each tool of `TOOLS` is on the host; a name that is missing was not told."""

    has: Mapping[str, bool] = field(default_factory=dict)


SCRIPT = rf"""
for t in {" ".join(tool for tool in TOOLS if "." not in tool)}; do
  tool "$t" >/dev/null && echo "has $t yes" || echo "has $t no"
done
h=no; for f in "$R"/usr/include/python3*/Python.h "$R"/usr/local/include/python3*/Python.h; do
  [ -e "$f" ] && h=yes; done; echo "has Python.h $h"
"""


def parse(section: Section) -> Reading[Compilers]:
    """Return the tools that were found; no line at all is unknown."""
    answer = looked(section, absent=())
    if not isinstance(answer, Known):
        return answer
    found = re.findall(r"(?m)^has (\S+) (yes|no)$", section.text)
    has = {name: word == "yes" for name, word in found if name in TOOLS}
    if not has:
        return Unknown("no tool was looked for", section.first)
    there = " ".join(sorted(name for name, is_there in has.items() if is_there))
    return Known(Compilers(has), there or "no compiler")


PROBE = Probe("compilers", Compilers, SCRIPT, parse)
