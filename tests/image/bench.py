"""The K3 image, built once for all tests that need one."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bringup.core.reading import Known
from bringup.edge.image_file import ImageFolder, read_image
from bringup.edge.image_store import ImageStore
from bringup.edge.pip import Index
from bringup.flow import image as flow_image

from .dockerd import Dockerd
from .k3 import make_k3

LIGHT: dict[str, Any] = {
    "packages": ["plain==1.0"],
    "no_deps": [],
    "gate": [{"check": "patches_in_place"}, {"check": "packages_kept"}],
}
"""Words of an image.yml that builds faster: no wheels of 50 MB."""

REFERENCE = "dynamo-sglang-k3:1.3.0.post1"


@dataclass(frozen=True)
class Bench:
    """An image that was built once, and the order it was built by."""

    folder: ImageFolder
    order: flow_image.BuildOrder
    built: flow_image.Built


def build_bench(builder: Dockerd, wheel_folder: Path, folder: Path) -> Bench:
    moments = (f"2026-01-01T00:00:{second:02d}Z" for second in itertools.count())
    order = flow_image.BuildOrder(
        engine=builder.engine,
        index=Index(wheels=wheel_folder),
        store=ImageStore(folder / "state"),
        moment=lambda: next(moments),
        operator="somebody",
        fetch_wheels=True,
        network="none",
    )
    k3 = image(folder)
    return Bench(k3, order, flow_image.build(k3, order))


def image(root: Path, **changed: Any) -> ImageFolder:
    """Return the K3 folder of the tests, some words of its image.yml changed."""
    return read_image(make_k3(root, **changed))


def identity(engine: Dockerd, reference: str = REFERENCE) -> str:
    """Return the ID that a name stands for, "" where it stands for none."""
    found = engine.engine.image(reference)
    return found.value.id if isinstance(found, Known) else ""
