"""Real engines and a real engine's source for the tests of images."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from . import standin
from .bench import Bench, build_bench
from .dockerd import Dockerd, dockerd
from .wheels import make_wheel

BASE = "lmsysorg/sglang:kimi-k3"
SETTINGS = ("ENV PATH=/usr/local/bin:/bin LD_LIBRARY_PATH=/usr/local/lib", "WORKDIR /sgl-workspace")


def import_base(engine: Dockerd, name: str = BASE) -> None:
    """Give an engine the stand-in base under a name."""
    changes = [word for setting in SETTINGS for word in ("-c", setting)]
    with standin.base_tree().open("rb") as tree:
        subprocess.run(
            [*engine.words, "import", *changes, "-", name],
            stdin=tree, stdout=subprocess.DEVNULL, check=True,
        )  # fmt: skip


@pytest.fixture(scope="session")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A short folder for engines: a socket's path may not be long."""
    folder = Path(f"/tmp/bringup-engines-{os.getpid()}")
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def real_wheels() -> dict[str, Path]:
    """The wheels of the real engine and of Dynamo by name, downloaded on first use."""
    return standin.wheels()


@pytest.fixture(scope="session")
def builder(engines: Path, real_wheels: dict[str, Path]) -> Iterator[Dockerd]:
    """The controller's engine, which has the base."""
    with dockerd(engines / "builder") as engine:
        import_base(engine)
        yield engine


@pytest.fixture(scope="session")
def wheel_folder(real_wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The real Dynamo wheels, and a small made one that comes with its dependency."""
    folder = tmp_path_factory.mktemp("wheels")
    for name in ("ai-dynamo", "ai-dynamo-runtime"):
        wheel = real_wheels[name]
        (folder / wheel.name).symlink_to(wheel)
    make_wheel(folder, "plain", "1.0", ("plain-dependency>=1",))
    make_wheel(folder, "plain-dependency", "1.2")
    make_wheel(folder, "sglang", "0.5.14")
    make_wheel(folder, "swap", "1.0", ("sglang<0.5.15",))
    return folder


@pytest.fixture(scope="session")
def bench(builder: Dockerd, wheel_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return build_bench(builder, wheel_folder, tmp_path_factory.mktemp("bench"))
