"""dynamo.vllm: a vLLM worker that registers with Dynamo."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..core.host import Deployment, Role
from ..core.rules import Finding, World
from .build import Piece, assemble, extra, pieces_of
from .check import findings
from .common import visible
from .dynamo import MODES, SCRIPTS, mode, services
from .dynamo import SETTINGS as DYNAMO
from .engine import CommandLine, Engine, Settled, Versions
from .schema import Schema
from .vllm_settings import SETTINGS as SHARED
from .vllm_settings import connector, dialect, leader

SETTINGS = (*SHARED, *(row for row in DYNAMO if row not in SHARED))
DIALECT = dialect("dynamo.vllm", "vllm")


def command(settled: Settled, world: World, deployment: Deployment, role: Role) -> CommandLine:
    """Return the worker's command line in the spelling of the image's vLLM."""
    return assemble(
        ("python3", "-m", "dynamo.vllm"),
        (
            *_identity(deployment, role),
            *pieces_of(SETTINGS, settled, world, role.mode, deployment.image.engine_version),
            *connector(settled, role, both=True),
            *leader(settled),
            *visible(deployment, role),
            *services(deployment),
            *extra(deployment, role),
        ),
    )


def _identity(deployment: Deployment, role: Role) -> Iterator[Piece]:
    model, said = deployment.model, (f"said deployment {deployment.name}",)
    yield Piece("--model", model.path, said)
    yield Piece("--served-model-name", model.served_name, said)
    yield from mode(deployment, role)


def versions(deployment: Deployment) -> Versions:
    """Return which lists of flags hold: Dynamo's own, then vLLM's."""
    image = deployment.image
    return {"dynamo.vllm": image.dynamo_version, "vllm": image.engine_version}


def check(
    line: CommandLine, versions: Versions, asked: Iterable[Schema] = ()
) -> tuple[Finding, ...]:
    """Return what these versions would refuse, ignore or misread in a command line."""
    return findings(line, versions, DIALECT, asked)


ENGINE = Engine(
    name="dynamo.vllm",
    title="vLLM worker registered with Dynamo",
    modes=MODES,
    scripts=SCRIPTS,
    settings=SETTINGS,
    command=command,
    check=check,
    versions=versions,
    port=8000,
    registers=True,
)
