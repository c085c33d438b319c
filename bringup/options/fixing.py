"""Which findings are mended before a host is changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ..core.verb import Help


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixing:
    """Whether findings are mended first, which, and at what risk; in the operator's words."""

    fix: Annotated[bool, Help("mend what is safe to mend first, then look again")] = False
    fix_only: Annotated[
        tuple[str, ...], Help("mend these findings only, as CTR-01,FAB-03; repeatable")
    ] = ()
    fix_level: Annotated[
        str, Help("safe; service: may restart a service; reboot: also print what needs one")
    ] = "safe"
