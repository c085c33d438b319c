"""What to ask a host about its images, in one trip, and how to read the answer."""

from __future__ import annotations

import json
from collections.abc import Mapping

from ..core.reading import Absent, Known, Reading, Unknown
from ..core.script import Answer, Ask, Section
from ..core.words import HostPath, command, quote
from ..image.facts import ImageFacts, parse_images
from ..image.route import HostImages

# One image a line: `inspect` of some hundred images would be megabytes of settings.
_FORMAT = (
    '{"Id":{{json .Id}},"Size":{{json .Size}},"RepoTags":{{json .RepoTags}},'
    '"RepoDigests":{{json .RepoDigests}},"RootFS":{{json .RootFS}},'
    '"Created":{{json .Created}},"Config":{"Labels":{{json .Config.Labels}}}}'
)


def asks(engine: tuple[str, ...], stage: HostPath) -> tuple[Ask, ...]:
    """Return the questions: images, free space of the engine and of the staging folder, parts."""
    words, folder = command(engine), quote(stage)
    inspect = command((*engine, "image", "inspect", "--format", _FORMAT))
    return (
        Ask(
            "images",
            f"ids=$({words} image ls --quiet --no-trunc) || exit; "
            f'[ -z "$ids" ] || {inspect} $(printf "%s\\n" $ids | sort -u)',
            60,
            "engine",
        ),
        Ask(
            "free",
            f"i=$({words} info --format '{{{{.DockerRootDir}}}} {{{{json .DriverStatus}}}}' "
            f"2>/dev/null) || i=$({words} info --format '{{{{.Store.GraphRoot}}}}') || exit; "
            'df -Pk "${i%% *}" | tail -n 1; printf "%s\\n" "${i#* }"',
            20,
            "engine",
        ),
        Ask(
            "stage",
            f'd={folder}; while [ ! -d "$d" ]; do d=${{d%/*}}; d=${{d:-/}}; done; '
            'df -Pk "$d" | tail -n 1; '
            "command -v zstd >/dev/null && echo zstd; "
            f"cd {folder} 2>/dev/null || exit 0; find . -name '*.part'",
            10,
        ),
    )


def parse(answer: Answer, engine: tuple[str, ...]) -> HostImages:
    """Return what a host said; what it did not say is unknown."""
    return HostImages(
        images=_images(answer["images"]),
        free=_available(answer["free"]),
        room=_available(answer["stage"]),
        staged=_staged(answer["stage"]),
        is_docker="docker" in engine[0],
        zstd="zstd" in answer["stage"].text.splitlines(),
        is_containerd="io.containerd.snapshotter" in answer["free"].text,
    )


def _images(section: Section) -> Reading[tuple[ImageFacts, ...]]:
    if section.exit == 127:
        return Absent("no engine on its PATH")
    if section.trouble or section.exit != 0:
        return Unknown(section.trouble or f"exit {section.exit}", section.first)
    lines = ",".join(line for line in section.text.splitlines() if line.strip())
    try:
        return Known(parse_images(f"[{lines}]"))
    except (ValueError, json.JSONDecodeError) as error:
        return Unknown(f"its images do not read: {error}", section.first)


def _available(section: Section) -> Reading[int]:
    """Read the fourth column of ``df -Pk``, in KiB."""
    words = section.first.split()
    if section.trouble or section.exit != 0 or len(words) < 6 or not words[3].isdecimal():
        return Unknown(section.trouble or f"exit {section.exit}", section.first)
    return Known(int(words[3]) * 1024, section.first)


def _staged(section: Section) -> Mapping[str, frozenset[str]]:
    """Return the parts of earlier tries, by the name of their folder."""
    found: dict[str, set[str]] = {}
    for line in section.text.splitlines():
        _, folder, name = (*line.split("/"), "", "")[:3]
        if folder and name:
            found.setdefault(folder, set()).add(name)
    return {folder: frozenset(names) for folder, names in found.items()}
