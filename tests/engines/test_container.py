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

from bringup.core.errors import CommandFailed
from bringup.edge.ssh import SshFleet, SshOptions
from bringup.edge.store import Store
from bringup.engines import ENGINES
from bringup.engines.engine import CommandLine
from bringup.flow.engine import answered, inspect
from bringup.flow.types import Tools
from tests.dynamo.processes import free_ports
from tests.image.dockerd import Dockerd, dockerd

from .test_front import HERE, standing
from .test_scripts import RENDERER

pytestmark = [pytest.mark.root, pytest.mark.slow, pytest.mark.xdist_group("engine-container")]

PYTHON = """#!/bin/sh
trap 'exit 0' TERM
echo serving "$@"
sleep 600 &
wait
"""


TELLS = """#!/bin/sh
case "$1 $3" in
"-c sglang") echo 0.5.18+k3 ;;
"-m --help") printf 'options:\\n  --page-size N  tokens\\n  --k3-only      a switch\\n' ;;
*) echo "ModuleNotFoundError: No module named dynamo"; exit 1 ;;
esac
"""
TOOLS = ("sh", "sleep", "echo", "timeout", "head", "sed", "printf", "cat")


def image(engine: Dockerd, python: str = PYTHON, name: str = "front:1") -> str:
    """Make an image with that python3; return its id."""
    body = io.BytesIO()
    with tarfile.open(fileobj=body, mode="w") as archive:
        archive.add(Path("/bin/busybox").resolve(), "bin/busybox")
        for tool in TOOLS:
            link = tarfile.TarInfo(f"bin/{tool}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            archive.addfile(link)
        script = tarfile.TarInfo("bin/python3")
        script.size, script.mode = len(python), 0o755
        archive.addfile(script, io.BytesIO(python.encode()))
    words = [*engine.words, "import", "-", name]
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
            timeout=600,
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


def test_a_foreign_container_that_has_ended_is_not_removed(script: Script) -> None:
    docker = script.engine.docker
    docker("create", "--name", "kimi-k3-frontend", "front:1", "python3")
    try:
        refused = script("--start")
        assert refused.returncode == 4
        assert "a container of this name is not ours" in refused.stderr
        assert "kimi-k3-frontend" in docker("ps", "--all", "--format", "{{.Names}}")
    finally:
        docker("rm", "--force", "kimi-k3-frontend")


def test_an_engine_that_does_not_answer_is_no_absent_container(script: Script) -> None:
    script.engine = replace(script.engine, folder=Path("/nonexistent"))
    silent = script("--status")
    assert silent.returncode not in (0, 3)
    assert "nonexistent" in silent.stderr


def test_an_image_is_asked_and_believed(engine: Dockerd, tmp_path: Path) -> None:
    image(engine, TELLS, "asked:1")
    tools = tools_at(tmp_path)
    sglang, dynamo = inspect(tools, engine.engine, "asked:1", ("sglang", "dynamo.sglang"))
    assert sglang.schema is not None
    assert sglang.schema.version == "0.5.18+k3"
    assert "No module named dynamo" in dynamo.trouble
    kept = answered(tools, replace(HERE.image, reference="asked:1"))
    assert kept == (sglang.schema,)
    line = CommandLine(("p", "--k3-only"), program=1)
    check, held = (
        ENGINES["dynamo.sglang"].check,
        {"sglang": "0.5.18", "dynamo.sglang": "1.3.0.post1"},
    )
    assert "flag-unknown" in {f.id for f in check(line, held)}
    assert "flag-unknown" not in {f.id for f in check(line, held, kept)}


def test_an_image_that_is_not_there_is_an_error_with_what_to_do(
    engine: Dockerd, tmp_path: Path
) -> None:
    with pytest.raises(CommandFailed, match="cannot start a container of nowhere:1"):
        inspect(tools_at(tmp_path), engine.engine, "nowhere:1", ("sglang",))


def tools_at(folder: Path) -> Tools:
    """Return tools that keep what they learn below a folder, and reach nobody."""
    return Tools(
        fleet=SshFleet({}, SshOptions()), renderer=RENDERER, store=Store(folder),
        moment=lambda: "2026-01-01T00:00:00Z", nonce=lambda: "n0", operator="me@here",
        version="0.1.0",
    )  # fmt: skip
