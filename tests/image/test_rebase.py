"""A base moved: what the patch did, what the base did, where they meet; a real engine has both."""

from __future__ import annotations

from pathlib import Path

import pytest

from bringup.edge.image_file import read_image
from bringup.flow import image_base as flow_image_base
from bringup.image.rebase import Meeting

from . import standin
from .conftest import BASE
from .dockerd import Dockerd
from .k3 import ARGS_FILE, CACHE_FILE, diff_entry, make_k3, overlay_entry

SOURCE = "/sgl-workspace/sglang/python/sglang/srt"


def test_merge_joins_changes_in_different_places() -> None:
    base = b"".join(b"line %d\n" % n for n in range(20))
    merged, clean = flow_image_base.merge(base, base + b"ours\n", b"theirs\n" + base)
    assert clean
    assert merged == b"theirs\n" + base + b"ours\n"


def test_merge_shows_all_three_where_they_meet() -> None:
    merged, clean = flow_image_base.merge(b"old\n", b"ours\n", b"theirs\n")
    assert not clean
    assert all(word in merged for word in (b"<<<<<<< patch", b"||||||| base", b">>>>>>> new-base"))


def new_base(builder: Dockerd, folder: Path, name: str, command: str) -> str:
    """Build a base on the stand-in in which a command changed something."""
    context = folder / "context"
    context.mkdir(exist_ok=True)
    (context / "Dockerfile").write_text(f"FROM {BASE}\nRUN cd {SOURCE} && {command}\n")
    builder.docker("build", "-q", "--network", "none", "-t", name, str(context))
    return name


CASES = {
    "untouched": ("true", Meeting.SAME),
    "changed elsewhere": (f"sed -i '1s/^/# new\\n/' {CACHE_FILE}", Meeting.MERGED),
    "changed in the same place": (f"printf '# theirs\\n' >> {CACHE_FILE}", Meeting.CONFLICT),
    "patch taken in": (f"printf '\\n# patched\\n' >> {CACHE_FILE}", Meeting.TAKEN),
    "file gone": (f"rm {CACHE_FILE}", Meeting.GONE),
}


@pytest.mark.slow
@pytest.mark.root
@pytest.mark.xdist_group("image")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_rebase_tells_how_a_patch_stands_to_a_new_base(
    case: str, builder: Dockerd, tmp_path: Path
) -> None:
    command, meeting = CASES[case]
    base = new_base(builder, tmp_path, f"rebase:{list(CASES).index(case)}", command)
    folder = read_image(make_k3(tmp_path, patches=[overlay_entry()]))
    (file,) = flow_image_base.rebase(folder, builder.engine, to=base)
    assert file.meeting is meeting
    assert file.old_sum == standin.source_sum(f"sglang/srt/{CACHE_FILE}")


@pytest.mark.slow
@pytest.mark.root
@pytest.mark.xdist_group("image")
def test_clean_merge_is_written_with_the_new_sum_and_nothing_else(
    builder: Dockerd, tmp_path: Path
) -> None:
    base = new_base(builder, tmp_path, "rebase:write", CASES["changed elsewhere"][0])
    path = make_k3(tmp_path, patches=[overlay_entry(), diff_entry()])
    before = (path / "image.yml").read_text()
    folder = read_image(path)
    files = flow_image_base.rebase(folder, builder.engine, to=base)
    flow_image_base.write_rebased(folder, files)
    body = (path / "patches/sglang/srt" / CACHE_FILE).read_text()
    assert body.startswith("# new\n")
    assert body.endswith("# patched\n")
    changed = files[0]
    assert (path / "image.yml").read_text() == before.replace(changed.old_sum, changed.new_sum)
    assert {file.file for file in files if file.meeting is Meeting.SAME} == {
        f"/sgl-workspace/sglang/python/{ARGS_FILE}"
    }
