"""Why a build failed, read from its log: our own programs' word, a remedy, the last lines."""

from __future__ import annotations

import re
from dataclasses import dataclass

_BUILDKIT = re.compile(r"#\d+ (?:[\d.]+ )?")

_REMEDIES = (
    (r"the base moved", "bringup image.rebase {name} --to {base} shows what the new base changed"),
    (r"o space left", "free space for the engine (docker system df), then build again"),
    (
        r"pull access denied|manifest unknown|> \[internal\] load metadata|image not known"
        r"|(?:Get|Head) .?https?://[^ ]*/v2/",
        "give the engine the base: docker pull {base}, or docker load an archive of it",
    ),
    (
        r"No matching distribution|name resolution|Connection refused|Network is unreachable",
        "build with wheels fetched beforehand (--fetch-wheels), or give the build an index",
    ),
    (r"it must stay|it is now", "pin the version that the base has, or leave the package out"),
)


@dataclass(frozen=True, slots=True)
class Failure:
    """What to tell of a failed build. `cannot` is "" when none of our programs spoke."""

    cannot: str
    said: str
    remedy: str


def explain(log: str, *, name: str, base: str) -> Failure:
    """Return why a build failed, by its log."""
    lines = [line.rstrip() for line in log.splitlines() if line.strip()]
    plain = [_BUILDKIT.sub("", line, count=1).strip() for line in lines]
    ours = dict.fromkeys(line for line in plain if line.startswith("cannot "))
    remedy = next((r for sign, r in _REMEDIES if re.search(sign, log, re.IGNORECASE)), "")
    return Failure(
        "; ".join(ours),
        "\n".join(lines[-10:]),
        remedy.format(name=name, base=base) or "repair what the last lines name, then build again",
    )
