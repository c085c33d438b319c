"""Tell whether model folders are whole by their own account, side by side."""

from __future__ import annotations

from dataclasses import dataclass

from ..core.errors import Exit, ToolError
from ..edge.pool import each
from ..weights.compare import Fault, faults_of, total_fault
from ..weights.folder import Folder
from .types import Tools
from .weights import Place, look
from .weights_sums import read_sums, sums_of


@dataclass(frozen=True, slots=True)
class Checked:
    """How one folder stands."""

    place: Place
    folder: Folder
    faults: tuple[Fault, ...] = ()
    note: str = ""
    error: ToolError | None = None

    @property
    def code(self) -> Exit:
        if self.error is not None:
            return self.error.code
        return Exit.FAILED if self.faults else Exit.DONE


def check(
    tools: Tools, places: tuple[Place, ...], *, hashes: bool = False, sums: str = ""
) -> tuple[Checked, ...]:
    """Look at folders, each in one trip; with sums, read the files that any are known of."""
    listed = read_sums(sums) if sums else {}

    def one(number: int) -> Checked:
        place = places[number]
        folder = look(place)
        faults, known = faults_of(folder), {}
        if hashes or sums:
            known = {f.name: told for f in folder.weights if (told := listed.get(f.name) or f.told)}
            faults = (*faults, *_other(tools, place, folder, known))
        note = total_fault(folder)
        if hashes and not known:
            note = f"{note}; no sums are known to compare with: add --sums".removeprefix("; ")
        return Checked(place, folder, faults, note)

    found: dict[int, Checked] = {}
    for outcome in each(range(len(places)), one, limit=tools.limit):
        place = places[outcome.item]
        if isinstance(outcome.error, ToolError):
            error = outcome.error.at(host=place.host.name)
            found[outcome.item] = Checked(place, Folder(place.path), error=error)
        elif outcome.error is not None:
            raise outcome.error
        elif outcome.value is not None:
            found[outcome.item] = outcome.value
    return tuple(found[number] for number in range(len(places)))


def _other(tools: Tools, place: Place, folder: Folder, known: dict[str, str]) -> tuple[Fault, ...]:
    """Return files whose sum is not the one that is known of them."""
    files = [file for file in folder.weights if file.name in known]
    have = sums_of(place.remote, place.path, files, tools.listen)
    return tuple(
        Fault(name, f"has the SHA-256 {have[name][:12]}…, not {known[name][:12]}…")
        for name in have
        if have[name] != known[name]
    )
