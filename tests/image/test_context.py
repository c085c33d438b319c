"""The build context is the identity: same inputs, same bytes; other inputs, and it says which."""

from __future__ import annotations

import io
import shutil
import tarfile
from pathlib import Path

from bringup.edge.image_file import read_image
from bringup.image.context import archive, changes

from .folders import make_folder

PATCH = {
    "overlay": "tree",
    "onto": "/engine",
    "reason": "why",
    "link": "https://example.org/1",
    "replaces": {"x.py": "new"},
}


def test_archive_reads_as_a_tar_and_is_zeroed() -> None:
    with tarfile.open(fileobj=io.BytesIO(archive({"b/c": b"2" * 600, "a": b"1"}))) as tar:
        members = tar.getmembers()
        body = tar.extractfile("b/c")
        assert body is not None
        assert body.read() == b"2" * 600
    assert [(m.name, m.mtime, m.uid, m.mode) for m in members] == [
        ("a", 0, 0, 0o644),
        ("b/c", 0, 0, 0o644),
    ]


def test_copied_folder_gives_the_same_digest(tmp_path: Path) -> None:
    one = make_folder(tmp_path / "one", files={"patches/tree/x.py": b"1"}, patches=[PATCH])
    other = tmp_path / "other" / "images" / "small"
    shutil.copytree(one, other)
    (other / "patches/tree/x.py").touch()
    assert read_image(one).context.digest == read_image(other).context.digest


def test_words_that_do_not_reach_the_image_leave_the_digest(tmp_path: Path) -> None:
    files = {"patches/tree/x.py": b"1"}
    one = read_image(make_folder(tmp_path / "1", files=files, patches=[PATCH]))
    reason = {**PATCH, "reason": "a better reason"}
    other = read_image(make_folder(tmp_path / "2", files=files, patches=[reason]))
    assert one.context.digest == other.context.digest


def test_changed_patch_is_named(tmp_path: Path) -> None:
    one = read_image(
        make_folder(tmp_path / "1", files={"patches/tree/x.py": b"1"}, patches=[PATCH])
    )
    two = read_image(
        make_folder(tmp_path / "2", files={"patches/tree/x.py": b"2"}, patches=[PATCH])
    )
    said = [str(change) for change in changes(one.context.inputs, two.context.inputs)]
    assert said == ["patches/tree/x.py: 6b86b273ff34 → d4735e3a265e"]


def test_changed_base_digest_changes_the_identity(tmp_path: Path) -> None:
    base = {"reference": "base:1", "digest": "sha256:" + "1" * 64}
    one = read_image(make_folder(tmp_path / "1"))
    two = read_image(make_folder(tmp_path / "2", base=base))
    names = [change.name for change in changes(one.context.inputs, two.context.inputs)]
    assert names == ["Dockerfile"]


def test_changed_gate_alone_needs_no_build(tmp_path: Path) -> None:
    one = read_image(make_folder(tmp_path / "1")).context
    two = read_image(make_folder(tmp_path / "2", gate=[{"check": "packages_kept"}])).context
    assert one.digest == two.digest
    assert one.gate != two.gate
