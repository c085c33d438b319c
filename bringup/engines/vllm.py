"""vllm: vLLM's own server, alone or as a prefill/decode pair behind a router."""

from __future__ import annotations

from collections.abc import Iterable

from ..core.host import Deployment, Mode, Role
from ..core.rules import Finding, World
from .build import Piece, assemble, extra, pieces_of
from .check import findings
from .engine import CommandLine, Engine, Setting, Settled, Versions
from .schema import Schema
from .vllm_settings import SETTINGS as SHARED
from .vllm_settings import connector, dialect, tail

SETTINGS = (
    Setting("listen_address", "--host"),
    Setting("port", "--port"),
    *SHARED,
)
DIALECT = dialect("vllm")


def command(settled: Settled, world: World, deployment: Deployment, role: Role) -> CommandLine:
    """Return the server's command line in the spelling of its version."""
    model, said = deployment.model, (f"said deployment {deployment.name}",)
    version = deployment.image.engine_version
    return assemble(
        ("vllm", "serve", model.path),
        (
            Piece("--served-model-name", model.served_name, said),
            *pieces_of(SETTINGS, settled, world, role.mode, version),
            *connector(settled, role),
            *tail(settled, deployment, role),
            *extra(deployment, role),
        ),
    )


def versions(deployment: Deployment) -> Versions:
    """Return which list of flags holds."""
    return {"vllm": deployment.image.engine_version}


def check(
    line: CommandLine, versions: Versions, asked: Iterable[Schema] = ()
) -> tuple[Finding, ...]:
    """Return what this version would refuse, ignore or misread in a command line."""
    return findings(line, versions, DIALECT, asked)


ENGINE = Engine(
    name="vllm",
    title="vLLM server",
    modes=(Mode.PREFILL, Mode.DECODE, Mode.AGGREGATED),
    scripts={
        Mode.PREFILL: "serve_vllm_prefill.sh",
        Mode.DECODE: "serve_vllm_decode.sh",
        Mode.AGGREGATED: "serve_vllm.sh",
    },
    settings=SETTINGS,
    command=command,
    check=check,
    versions=versions,
    port=8000,
    registers=False,
)
