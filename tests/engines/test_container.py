"""The container form of a script against a real engine: start, drift, refusal, log kept."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.dynamo.processes import free_ports
from tests.image.dockerd import Dockerd, dockerd

from .test_front import HERE, standing

pytestmark = [pytest.mark.root, pytest.mark.slow]

PYTHON = """#!/bin/sh
trap 'exit 0' TERM
echo serving "$@"
sleep 600 &
wait
"""


def image(engine: Dockerd) -> str:
    """Make an image whose python3 only sleeps; return its id."""
    body = io.BytesIO()
    with tarfile.open(fileobj=body, mode="w") as archive:
        archive.add(Path("/bin/busybox").resolve(), "bin/busybox")
        for name in ("sh", "sleep", "echo"):
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            archive.addfile(link)
        script = tarfile.TarInfo("bin/python3")
        script.size, script.mode = len(PYTHON), 0o755
        archive.addfile(script, io.BytesIO(PYTHON.encode()))
    words = [*engine.words, "import", "-", "front:1"]
    done = subprocess.run(words, input=body.getvalue(), capture_output=True, check=True)
    return done.stdout.decode().strip()


@dataclass
class Script:
    """A written script and the engine it talks to."""

    path: Path
    engine: Dockerd

    def __call__(self, word: str) -> subprocess.CompletedProcess[str]:
        env = {"DOCKER_HOST": f"unix://{self.engine.folder}/d.sock", "PATH": os.environ["PATH"]}
        return subprocess.run(
            ["dash", self.path, word], env=env, capture_output=True, text=True, check=False,
            timeout=180,
        )  # fmt: skip


@pytest.fixture(scope="module")
def engine() -> Iterator[Dockerd]:
    folder = Path(f"/tmp/bringup-serve-{os.getpid()}")
    with dockerd(folder / "e") as one:
        yield one
    folder.rmdir()


@pytest.fixture
def script(engine: Dockerd, tmp_path: Path) -> Iterator[Script]:
    one = Script(tmp_path / "front.sh", engine)
    write(one, tmp_path)
    yield one
    one("--stop")


def write(script: Script, folder: Path, *, digest: str = "") -> None:
    """Render the frontend of a deployment whose model and logs lie below a folder."""
    port = free_ports(1)[0]
    model = folder / "model"
    model.mkdir(exist_ok=True)
    (model / "config.json").write_text("{}")
    made = replace(
        HERE,
        model=replace(HERE.model, path=str(model), draft_path=""),
        image=replace(HERE.image, reference="front:1", digest=digest or image(script.engine)),
        services=replace(HERE.services, frontend=f"http://10.0.0.4:{port}"),
        knobs={"log_folder": str(folder / "log")},
    )
    script.path.write_text(standing(made, "b300-04")[1])


def test_a_container_starts_once_and_keeps_its_log(script: Script, tmp_path: Path) -> None:
    assert script("--status").returncode == 3
    started = script("--start")
    assert started.returncode == 0, started.stderr
    running = script("--status")
    assert running.returncode == 0
    assert "as written here" in running.stdout
    assert "already runs" in script("--start").stdout
    stopped = script("--stop")
    assert stopped.returncode == 0, stopped.stderr
    assert script("--status").returncode == 3
    kept = next((tmp_path / "log").glob("*.last.log")).read_text()
    assert "serving -m dynamo.frontend --http-port" in kept


def test_other_settings_are_told_and_left_alone(script: Script, tmp_path: Path) -> None:
    script("--start")
    write(script, tmp_path)  # another port
    assert script("--status").returncode == 4
    refused = script("--start")
    assert refused.returncode == 4
    assert "--stop, then start again" in refused.stderr


def test_another_image_is_refused(script: Script, tmp_path: Path) -> None:
    write(script, tmp_path, digest="sha256:" + "0" * 64)
    refused = script("--start")
    assert refused.returncode == 4
    assert "run bringup again with the image you mean" in refused.stderr


def test_a_foreign_container_of_the_same_name_is_left_alone(script: Script) -> None:
    docker = script.engine.docker
    docker("run", "--detach", "--network", "host", "--name", "kimi-k3-frontend",
           "front:1", "python3")  # fmt: skip
    try:
        stopped = script("--stop")
        assert stopped.returncode == 4
        assert "not ours" in stopped.stderr
        assert script("--start").returncode == 4
    finally:
        docker("rm", "--force", "kimi-k3-frontend")


def test_an_engine_that_does_not_answer_is_no_absent_container(script: Script) -> None:
    script.engine = replace(script.engine, folder=Path("/nonexistent"))
    silent = script("--status")
    assert silent.returncode not in (0, 3)
    assert "nonexistent" in silent.stderr
