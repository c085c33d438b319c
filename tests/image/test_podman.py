"""Podman and buildah build and gate the same folder, where there is no docker."""

from __future__ import annotations

import itertools
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from bringup.edge.engine import Builder, Engine
from bringup.edge.image_store import ImageStore
from bringup.edge.pip import Index
from bringup.flow import image as flow_image
from bringup.image.names import kept_images

from . import standin
from .bench import LIGHT, image
from .conftest import BASE, SETTINGS
from .here import Here

pytestmark = [pytest.mark.slow, pytest.mark.root, pytest.mark.xdist_group("image")]

# crun refuses control groups that are half old and half new, and limits above this machine's own
# are refused to a test in a container.
SETTINGS_FILE = """\
[containers]
default_ulimits = ["nofile=1024:4096", "nproc=1024:4096"]
[engine]
runtime = "/usr/sbin/runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
"""


@pytest.fixture(scope="module")
def podman(engines: Path) -> Iterator[Engine]:
    folder = engines / "podman"  # short: podman takes no run folder of over 50 characters
    folder.mkdir(parents=True)
    (folder / "containers.conf").write_text(SETTINGS_FILE)
    words = ("podman", "--root", f"{folder}/store", "--runroot", f"{folder}/run")
    changes = [word for setting in SETTINGS for word in ("-c", setting)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONTAINERS_CONF", str(folder / "containers.conf"))
        with standin.base_tree().open("rb") as tree:
            subprocess.run(
                [*words, "import", *changes, "-", BASE],
                stdin=tree, stdout=subprocess.DEVNULL, check=True,
            )  # fmt: skip
        yield Engine(Here(), words, "here")
        subprocess.run([*words, "system", "reset", "--force"], check=False, capture_output=True)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize("builder", [None, Builder.BUILDAH])
def test_folder_is_built_gated_and_named(
    builder: Builder | None, podman: Engine, wheel_folder: Path, tmp_path: Path
) -> None:
    moments = (f"2026-01-01T00:00:{second:02d}Z" for second in itertools.count())
    order = flow_image.BuildOrder(
        engine=podman,
        index=Index(wheels=wheel_folder),
        store=ImageStore(tmp_path / "state"),
        moment=lambda: next(moments),
        operator="somebody",
        builder=builder,
        fetch_wheels=True,
        network="none",
    )
    folder = image(tmp_path, tag=f"by-{builder.value if builder else 'podman'}", **LIGHT)
    built = flow_image.build(folder, order)
    assert built.record is not None
    assert built.record.builder == (builder.value if builder else "podman")
    assert flow_image.build(folder, order).record is None
    kept = kept_images(podman.images(), built.reference)
    assert [(one.image.id, one.is_current) for one in kept] == [(built.image.id, True)]
