"""Run a program of `edge.inside` in a fresh container of an image, and read its one answer."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core.errors import CommandFailed
from ..image.gate import GateAnswer, GateReport, GateStatus
from ..image.recipe import GateStep, Recipe
from .engine import Engine

INSIDE = Path(__file__).parent / "inside"

# The programs travel with the question: an image need not have been built by this version.
_BOOT = """
import io, json, pathlib, runpy, sys, tempfile
sent = json.load(sys.stdin)
folder = pathlib.Path(tempfile.mkdtemp())
for name, text in sent["programs"].items():
    path = folder / "bringup" / "edge" / "inside" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
sys.path.insert(0, str(folder))
sys.stdin = io.StringIO(json.dumps(sent["asked"]))
runpy.run_module("bringup.edge.inside." + sent["run"], run_name="__main__")
"""


def ask_inside(
    engine: Engine, image: str, program: str, asked: dict[str, Any], *, gpus: bool = False
) -> Any:  # noqa: ANN401 - JSON of the program's own form
    """Return what a program says of an image; raises CommandFailed when it does not run."""
    programs = {
        path.name: path.read_text() for path in sorted(INSIDE.glob("*.py")) if path.stem[0] != "_"
    }
    sent = {"programs": programs, "run": program, "asked": asked}
    words = ("python3", "-c", _BOOT)
    result = engine.ask(image, words, stdin=json.dumps(sent).encode(), gpus=gpus)
    marked = [x for x in result.stdout.splitlines() if x.startswith(f"@@{program} ")]
    if result.exit != 0 or not marked:
        raise CommandFailed(
            f"cannot look into image {image}: python3 in it ended with exit {result.exit}",
            ran=f"{' '.join(engine.words)} run --rm --entrypoint python3 {image} …",
            exit_code=result.exit,
            said=result.tail(),
            host=engine.name,
            remedy="an engine image needs python3 on its PATH",
        )
    return json.loads(marked[-1].partition(" ")[2])


@dataclass(frozen=True, slots=True)
class Inside:
    """What a base holds. `files` maps a path to its sum and content, None where it is absent."""

    packages: dict[str, str]
    python: str
    files: dict[str, tuple[str, bytes] | None]


def look(engine: Engine, image: str, files: Iterable[str], *, content: bool = False) -> Inside:
    """Return the packages of an image, and sums (with `content`, bytes) of some files in it."""
    asked = {"files": sorted(files), "content": content}
    said = ask_inside(engine, image, "look", asked)
    found = {
        name: None
        if document is None
        else (document["sha256"], base64.b64decode(document.get("base64", "")))
        for name, document in said["files"].items()
    }
    return Inside(said["packages"], said["python"], found)


def ask_gate(
    engine: Engine,
    image: str,
    recipe: Recipe,
    *,
    patched: dict[str, str],
    flags: tuple[str, ...] = (),
    gpus: bool = False,
) -> GateReport:
    """Ask a built image every question of its recipe; those for GPUs only where there are some.

    `patched` maps files to the sums that overlays must leave, `flags` are those of the rendered
    scripts, asked of every `help_lists` step as well.
    """
    steps = [step for step in recipe.gate if gpus or not step.gpu]
    asked = {
        "engine": {"name": recipe.engine.name, "path": recipe.engine.path},
        "pinned": [f"{pin.name}=={pin.version}" for pin in recipe.packages],
        "patched": patched,
        "steps": [_document(step, flags) for step in steps],
    }
    said = iter(ask_inside(engine, image, "gate", asked, gpus=gpus))
    answers = []
    for step in recipe.gate:
        if step in steps:
            status, words, versions = next(said)
            answers.append(GateAnswer(step.check, GateStatus(status), words, versions))
        else:
            answers.append(GateAnswer(step.check, GateStatus.NOT_RUN, _no_gpu(recipe), {}))
    return GateReport(tuple(answers))


def _no_gpu(recipe: Recipe) -> str:
    there = f"bringup image.check {recipe.name} --built --on HOST"
    return f"needs a GPU, and this engine has none; on a host that has: {there}"


def _document(step: GateStep, flags: tuple[str, ...]) -> dict[str, Any]:
    values: dict[str, Any] = {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in step.values.items()
    }
    if step.check == "help_lists":
        values["flags"] = sorted({*values["flags"], *flags})
    return {"check": step.check, **values}
