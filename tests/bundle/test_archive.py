"""The bundle's bytes: the same everywhere, and nothing odd is let in."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bringup.bundle.archive import pack
from bringup.bundle.manifest import Identity, make_manifest, parse_manifest
from bringup.bundle.names import MARKER, from_raw, raw
from bringup.bundle.selection import Why, select
from bringup.core.errors import UsageError
from bringup.edge.bundle_files import (
    open_archive,
    read_files,
    scan_folder,
    summed,
    write_archive,
)

from .folders import hub_snapshot, safetensors, with_weights

ROOT = Path(__file__).parent.parent.parent


def bundled(folder: Path, path: Path) -> Path:
    """Make a bundle of a folder with nothing but the parts under test."""
    selection = select(scan_folder(folder).candidates)
    contents = read_files(folder, tuple(one.name for one in selection.taken))
    manifest = make_manifest((summed(n, c) for n, c in contents.items()), Identity())
    write_archive(path, manifest, contents)
    return path


def archive_of(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for info, content in members:
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def info(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member


def test_bundle_holds_all_but_weights_and_hidden_folders(tmp_path: Path) -> None:
    opened = open_archive(bundled(with_weights(tmp_path / "model"), tmp_path / "b.tgz"))
    assert sorted(opened.files) == [
        "assets/logo.svg",
        "chat_template.jinja",
        "config.json",
        "generation_config.json",
        "model.safetensors.index.json",
        "tokenizer.json",
        "tokenizer_config.json",
    ]


def test_plain_tar_unpacks_a_bundle_with_fixed_modes(tmp_path: Path) -> None:
    bundle = bundled(with_weights(tmp_path / "model"), tmp_path / "b.tgz")
    out = tmp_path / "out"
    out.mkdir()
    subprocess.run(["tar", "-xpzf", bundle, "-C", out], check=True)
    assert (out / "config.json").read_bytes() == (tmp_path / "model/config.json").read_bytes()
    assert (out / "config.json").stat().st_mode & 0o777 == 0o644
    assert (out / "assets").stat().st_mode & 0o777 == 0o755


MAKE = """
import os, sys
os.umask(int(sys.argv[3], 8))
from pathlib import Path
from tests.bundle.test_archive import bundled
bundled(Path(sys.argv[1]), Path(sys.argv[2]))
"""


@pytest.mark.parametrize(
    ("zone", "umask", "locale", "age"),
    [
        ("Pacific/Kiritimati", "000", "C", 0),
        ("America/Anchorage", "077", "POSIX", 10**9),
        ("UTC", "027", "tr_TR.ISO-8859-9", 4 * 10**9),
    ],
)
def test_other_clock_umask_and_locale_give_the_same_bytes(
    tmp_path: Path, zone: str, umask: str, locale: str, age: int
) -> None:
    folder = with_weights(tmp_path / "model")
    (folder / "größe.txt").write_text("ä")
    Path(os.fsdecode(os.fsencode(folder) + b"/broken\xff\xfe.txt")).write_text("x")
    here = bundled(folder, tmp_path / "here.tgz").read_bytes()
    for path in folder.rglob("*"):
        os.utime(path, (age, age))
        if path.is_file():
            path.chmod(0o640)
    there = tmp_path / "there.tgz"
    env = {**os.environ, "TZ": zone, "LC_ALL": locale, "LANG": locale, "PYTHONHASHSEED": "7"}
    words = [sys.executable, "-c", MAKE, str(folder), str(there), umask]
    subprocess.run(words, env=env, cwd=ROOT, check=True)
    assert there.read_bytes() == here


def test_gzip_layer_is_what_gzip_reads() -> None:
    content = os.urandom(200_000)
    manifest = make_manifest([summed("big", content)], Identity())
    data = b"".join(pack(manifest, [content]))
    assert content in gzip.decompress(data)


def test_bundle_of_a_hub_snapshot_follows_its_links_into_the_blobs(tmp_path: Path) -> None:
    snapshot = hub_snapshot(tmp_path)
    opened = open_archive(bundled(snapshot, tmp_path / "b.tgz"))
    assert {"config.json", "tiktoken.model", "encoding_k3.py"} <= opened.files.keys()
    assert scan_folder(snapshot).revision == "0" * 39 + "a"


def test_revision_is_read_from_the_hub_client_s_own_note(tmp_path: Path) -> None:
    note = tmp_path / ".cache/huggingface/download/config.json.metadata"
    note.parent.mkdir(parents=True)
    note.write_text("b" * 40 + "\nabc\n1.0\n")
    assert scan_folder(tmp_path).revision == "b" * 40


def test_links_out_of_the_folder_stay_out(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "secret").write_text("root:x")
    (folder / "absolute").symlink_to(tmp_path / "secret")
    (folder / "relative").symlink_to("../secret")
    (folder / "system").symlink_to("/etc/passwd")
    (folder / "broken").symlink_to("nowhere")
    (folder / "loop").symlink_to("loop")
    (folder / "up").symlink_to("..")
    (folder / "inner.txt").write_text("x")
    (folder / "good").symlink_to("inner.txt")
    os.mkfifo(folder / "pipe")
    selection = select(scan_folder(folder).candidates)
    assert [one.name for one in selection.taken] == ["good", "inner.txt"]
    assert {left.why for left in selection.left} == {Why.KIND}


def test_missing_folder_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nowhere"):
        scan_folder(tmp_path / "nowhere")


EVIL = {
    "a path that leads up": (info("../evil"), b"x"),
    "an absolute path": (info("/tmp/evil"), b"x"),
    "a symbolic link": (info("link", tarfile.SYMTYPE, "/etc/passwd"), b""),
    "a hard link": (info("link", tarfile.LNKTYPE, "config.json"), b""),
    "a device": (info("null", tarfile.CHRTYPE), b""),
    "a file that no manifest names": (info("extra"), b"x"),
}


@pytest.mark.parametrize("case", EVIL)
def test_archive_with_something_odd_is_refused(tmp_path: Path, case: str) -> None:
    good = open_archive(bundled(with_weights(tmp_path / "model"), tmp_path / "b.tgz"))
    members = [(info(name), content) for name, content in good.files.items()]
    with tarfile.open(good.path) as archive:
        marker = archive.extractfile(MARKER)
        assert marker is not None
        members.insert(0, (info(MARKER), marker.read()))
    evil = tmp_path / "evil.tgz"
    evil.write_bytes(archive_of(*members, EVIL[case]))
    with pytest.raises(UsageError, match=r"cannot (trust|read)"):
        open_archive(evil)


def test_altered_file_is_found(tmp_path: Path) -> None:
    bundle = bundled(with_weights(tmp_path / "model"), tmp_path / "b.tgz")
    bundle.write_bytes(bundle.read_bytes().replace(b"<|im_middle|>", b"<|im_muddle|>"))
    with pytest.raises(UsageError, match="cannot"):
        open_archive(bundle)


@pytest.mark.parametrize("cut", [0, 3, 30, 5000, -1])
def test_cut_off_bundle_is_refused(tmp_path: Path, cut: int) -> None:
    bundle = bundled(with_weights(tmp_path / "model"), tmp_path / "b.tgz")
    bundle.write_bytes(bundle.read_bytes()[:cut])
    with pytest.raises(UsageError, match="cannot"):
        open_archive(bundle)


def test_manifest_with_another_digest_is_refused(tmp_path: Path) -> None:
    opened = open_archive(bundled(with_weights(tmp_path / "model"), tmp_path / "b.tgz"))
    with tarfile.open(opened.path) as archive:
        marker = archive.extractfile(MARKER)
        assert marker is not None
        data = marker.read().replace(opened.manifest.digest.encode(), b"sha256:" + b"0" * 64)
    with pytest.raises(UsageError, match="digest"):
        parse_manifest(data, where="b.tgz")


PART = st.binary(min_size=1, max_size=12).filter(
    lambda part: b"/" not in part and b"\0" not in part and part not in (b".", b"..")
)
NAMES = st.lists(PART, min_size=1, max_size=3).map(b"/".join)
INNOCENT = st.one_of(st.just(b""), st.binary(max_size=3000), st.just(b"x" * 70_000))
WEIGHT = st.one_of(
    st.just(safetensors()),
    st.binary(max_size=50).map(lambda tail: b"GGUF" + tail),
    st.binary(max_size=50).map(lambda tail: b"\x80\x02" + tail),
)
TREES = st.lists(
    st.tuples(NAMES, st.sampled_from(["file", "weight", "link", "out"]), INNOCENT, WEIGHT),
    max_size=12,
)


def grow(root: Path, tree: list[tuple[bytes, str, bytes, bytes]]) -> dict[bytes, bytes]:
    """Write a tree as far as its names allow; return the innocent files by their raw names."""
    base, written = os.fsencode(root), dict[bytes, bytes]()
    secret = root.parent / "secret"
    for name, kind, innocent, weight in tree:
        path = Path(os.fsdecode(base + b"/" + name))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if os.path.lexists(path):
                continue
            if kind == "out":
                path.symlink_to(secret)
            elif kind == "link":
                path.symlink_to(os.fsdecode(name.rpartition(b"/")[2] + b"-target"))
            else:
                path.write_bytes(innocent if kind == "file" else weight)
                written |= {name: innocent} if kind == "file" else {}
        except OSError:  # a parent of this name is a file already
            continue
    return written


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(tree=TREES)
def test_any_tree_gives_a_bundle_without_weights_that_opens_to_the_same_files(
    tree: list[tuple[bytes, str, bytes, bytes]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("tree") / "model"
    folder.mkdir()
    (folder.parent / "secret").write_bytes(b"never to be packed")
    written = grow(folder, tree)
    opened = open_archive(bundled(folder, folder.parent / "b.tgz"))
    for name, content in opened.files.items():
        assert written.get(raw(name)) == content, "only innocent files, byte for byte"
        assert not select([one for one in scan_folder(folder).candidates if one.name == name]).left
    visible = {
        from_raw(name)
        for name in written
        if not any(
            part.startswith(b".") or part == b"__pycache__" for part in name.split(b"/")[:-1]
        )
    }
    left = {one.name for one in select(scan_folder(folder).candidates).left}
    assert opened.files.keys() | left >= visible, "nothing is lost without a word"
