"""Make and check tokenizer bundles: read a model folder here or on a host, decide, write.

The verbs' work: `make` and `check`. Placing a bundle is in `bundle_push`, telling why a model
list is empty in `bundle_doctor`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..bundle.content import READ, Content, identity, read_content
from ..bundle.manifest import Manifest, make_manifest
from ..bundle.match import against_cards, difference, held
from ..bundle.names import shown
from ..bundle.releases import release_of
from ..bundle.reports import BundleReport, CheckReport
from ..bundle.rules import Folder, judge_folder, readers
from ..bundle.scan import (
    LISTING,
    Listing,
    fetch_asks,
    listing_ask,
    parse_files,
    parse_listing,
    trips,
)
from ..bundle.selection import FILE_LIMIT, Candidate, Selection, select
from ..core.errors import Blocked, ToolError, UsageError
from ..core.event import Event, Listen, ignore
from ..core.reading import Absent, Known, Reading
from ..core.rules import Finding, Level
from ..core.script import Section
from ..edge.bundle_files import Opened, read_files, scan_folder, summed, write_archive
from ..edge.site import Site
from ..readiness.cards import ModelCard


@dataclass(frozen=True, slots=True)
class Source:
    """A model folder that was read: what is in it, what was chosen, and the chosen bytes."""

    place: str  # as people name it: a path, or HOST:PATH
    listing: Listing
    selection: Selection
    files: Mapping[str, bytes] = field(repr=False)

    @property
    def content(self) -> Content:
        return read_content(self.files, {n: self.files[n] for n in READ if n in self.files},
                            self.selection.left)  # fmt: skip


def read_here(folder: Path, *, file_limit: int = FILE_LIMIT, listen: Listen = ignore) -> Source:
    """Read a model folder on this machine. Raises UsageError."""
    listen(Event("here", "read", f"looking at {folder}"))
    listing = scan_folder(folder)
    selection = _selected(str(folder), listing, file_limit)
    names = tuple(one.name for one in selection.taken)
    files = read_files(Path(listing.folder), names)
    return Source(str(folder), listing, _unchanged(selection, files, file_limit), files)


def read_there(
    site: Site, path: str, *, file_limit: int = FILE_LIMIT, listen: Listen = ignore
) -> Source:
    """Read a model folder on a host, in two trips. Raises UsageError, Unreachable, ToolError."""
    place = f"{site.name}:{path}"
    listen(Event(site.name, "read", f"looking at {path}"))
    listing = list_there(site, path)
    selection = _selected(place, listing, file_limit)
    what = f"fetching {len(selection.taken)} files, {selection.size} bytes"
    listen(Event(site.name, "read", what))
    files = fetch_there(site, path, selection.taken)
    for candidate in selection.taken:
        if summed(candidate.name, files[candidate.name]).sha256 != candidate.sha256:
            raise ToolError(
                f"cannot read {shown(candidate.name)} whole: its SHA-256 is not the host's own",
                host=site.name,
                remedy="make sure that nothing writes to the model folder, and try again",
            )
    return Source(place, listing, selection, files)


def list_there(site: Site, path: str) -> Listing:
    """Return what is in a folder on a host, in one trip. Raises UsageError when it is not there."""
    match listed_there(site, path):
        case Known(listing):
            return listing
        case Absent(evidence):
            raise UsageError(
                f"cannot read {path}: {evidence}",
                host=site.name,
                remedy="give the worker's model path",
            )
        case unknown:
            raise ToolError(
                f"cannot read {path}: {unknown.why}", host=site.name, said=unknown.evidence
            )


def listed_there(site: Site, path: str) -> Reading[Listing]:
    """Return what is in a folder on a host; absent where there is no such folder."""
    return parse_listing(site.ask((listing_ask(path),))[LISTING])


def fetch_there(site: Site, path: str, chosen: tuple[Candidate, ...]) -> dict[str, bytes]:
    """Return the contents of files on a host, most often in one trip."""
    sections: list[Section] = []
    for asks in trips(fetch_asks(path, chosen)):
        sections += site.ask(asks).values()
    files = parse_files(chosen, sections)
    if isinstance(files, Known):
        return files.value
    why = files.why if not isinstance(files, Absent) else "gone"
    raise ToolError(f"cannot fetch files of {path}: {why}", host=site.name)


def make(
    source: Source,
    out: Path,
    *,
    dynamo: str = "",
    processor: str = "dynamo",
    revision: str = "",
    accept: Iterable[str] = (),
) -> BundleReport:
    """Write the bundle of a model folder, for a frontend of the given Dynamo version.

    Without a version, a folder is refused that no known release could read. `accept` names
    findings that the operator takes upon themselves. Raises Blocked, UsageError.
    """
    findings = judge_folder(Folder(source.content, release_of(dynamo), processor))
    able = readers(source.content)
    blocks = [f for f in findings if f.level is Level.BLOCK and f.id not in set(accept)]
    if blocks:
        raise _refused(source, blocks, dynamo)
    manifest = manifest_of(source, revision=revision)
    sum_ = write_archive(out, manifest, source.files)
    return BundleReport(
        source.place, str(out), sum_, manifest, source.selection.left, findings, able
    )  # fmt: skip


def manifest_of(source: Source, *, revision: str = "") -> Manifest:
    """Return the manifest of a model folder; a revision given by hand outweighs a found one."""
    who = identity(
        source.content, source.files.get("config.json", b""), revision or source.listing.revision
    )
    return make_manifest((summed(name, data) for name, data in source.files.items()), who)


def _refused(source: Source, blocks: list[Finding], dynamo: str) -> Blocked:
    who = f"Dynamo {dynamo} would not" if dynamo else "no known Dynamo would"
    lines = [f"{block.id}: {'; '.join(block.evidence)}" for block in blocks]
    return Blocked(
        f"cannot make a bundle of {source.place}: {who} list the model",
        said="\n".join(lines),
        remedy="\n".join(f"{block.id}: {block.remedy}" for block in blocks)
        + "\nto make it all the same: --accept " + " --accept ".join(b.id for b in blocks),
    )  # fmt: skip


def _selected(place: str, listing: Listing, file_limit: int) -> Selection:
    selection = select(listing.candidates, file_limit=file_limit)
    if selection.excess:
        raise UsageError(
            f"cannot make a bundle of {place}: {selection.excess}",
            remedy="give the folder that holds config.json, not one above it",
        )
    return selection


def _unchanged(selection: Selection, files: Mapping[str, bytes], file_limit: int) -> Selection:
    """Judge once more by what was read: a file may have been replaced since it was looked at."""
    again = select(
        (Candidate(name, len(data), data[:512]) for name, data in files.items()),
        file_limit=file_limit,
    )
    if again.left:
        raise UsageError(
            f"cannot read {again.left[0]}: it changed while it was read",
            remedy="make sure that nothing writes to the model folder, and try again",
        )
    return selection


def check_cards(bundle: Opened, cards: Iterable[ModelCard], *, name: str = "") -> CheckReport:
    """Compare a bundle with what workers announce, before anything is restarted.

    Raises UsageError when no card is there to compare with: that is not a good bundle.
    """
    mine = tuple(card for card in cards if not name or name in (card.name, *card.aliases))
    if not mine:
        raise UsageError(
            f"cannot compare {bundle.path} with model cards: no worker announces "
            + (name or "a model"),
            remedy="wait until the workers have loaded; look with: bringup bundle.doctor",
        )
    wrong = against_cards(held(bundle.manifest), mine)
    return CheckReport(str(bundle.path), bundle.manifest, mismatches=wrong, cards=mine)


def check_folder(bundle: Opened, site: Site, path: str) -> CheckReport:
    """Compare a bundle with a folder on a host or on this machine, in one trip."""
    listing = list_there(site, path)
    sums = {one.name: one.sha256 for one in listing.candidates if one.sha256}
    return CheckReport(str(bundle.path), bundle.manifest, difference(bundle.manifest, sums))
