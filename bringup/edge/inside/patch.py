"""Apply an image's patches to the letter: every file that is replaced has the sum it must have.

Runs inside the image: ``python3 -m bringup.edge.inside.patch patches.json patches/``. Nothing is
written unless everything fits. Leaves `patched.json`: the sum of every patched file.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

from ...image.unified import PatchError, apply, parse

STATE = Path("/opt/bringup")


def sum_of(path: Path) -> str:
    """Return the sha256 of a file, or "new" where there is none."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "new"


def moved(patch: dict[str, Any]) -> list[str]:
    """Return a line for every file that is not the one the patch was made for."""
    lines = []
    for name, wanted in sorted(patch["replaces"].items()):
        path = Path(patch["onto"]) / name
        found = sum_of(path)
        if found != wanted:
            state = "is not there" if found == "new" else f"has sha256 {found}"
            want = "there should be none" if wanted == "new" else f"it replaces sha256 {wanted}"
            lines.append(
                f"cannot apply patch {patch['source']}: the base moved: {path} {state}, {want}"
            )
    return lines


def results(patch: dict[str, Any], folder: Path) -> dict[Path, bytes]:
    """Return the new content of every file of a patch; raises PatchError."""
    onto = Path(patch["onto"])
    if patch["kind"] == "overlay":
        tree = folder / patch["source"]
        return {onto / name: (tree / name).read_bytes() for name in patch["replaces"]}
    changed = {}
    for diff in parse((folder / patch["source"]).read_text()):
        path = onto / diff.path
        changed[path] = apply(diff, path.read_bytes() if diff.old else b"")
    return changed


def write(content: dict[Path, bytes]) -> None:
    """Write files, each with the mode of the one it replaces."""
    for path, body in content.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = path.stat().st_mode if path.exists() else 0o100644
        path.write_bytes(body)
        path.chmod(mode & 0o7777)


def main(words: list[str]) -> None:
    patches, folder = json.loads(Path(words[0]).read_text()), Path(words[1])
    sums: dict[str, str] = {}
    for patch in patches:
        faults = moved(patch)
        if faults:
            sys.exit("\n".join(faults))
        try:
            content = results(patch, folder)
        except PatchError as error:
            sys.exit(f"cannot apply patch {patch['source']}: {error}")
        write(content)
        sums.update({str(path): sum_of(path) for path in content})
        print(f"bringup: patched {len(content)} files by {patch['source']}", flush=True)
    (STATE / "patched.json").write_text(json.dumps(sums, indent=1, sort_keys=True))


if __name__ == "__main__":
    main(sys.argv[1:])
