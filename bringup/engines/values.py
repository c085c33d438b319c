"""What a script's template needs to know, from a settled worker."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..core.host import Deployment, Role
from ..core.rules import World
from ..core.words import Secret
from . import container
from .front import ROUTER
from .services import SERVICES
from .spec import Spec, text

# Shell variables at the top of a script, and the options that show them instead of a value.
NAMES = {"--model-path": "MODEL", "--model": "MODEL", "--served-model-name": "SERVED_NAME"}


def values(
    spec: Spec, world: World, deployment: Deployment, role: Role, *, tool: str
) -> dict[str, object]:
    """Return the template's values. `tool` names what made the script, with its version."""
    program, *words = spec.command.argv
    shown = {n: v for n, v in spec.command.env.items() if not isinstance(v, Secret)}
    return {
        "tool": tool,
        "spec": spec,
        "script": spec.script,
        "title": f"{spec.mode.value} worker" if spec.has_gpus else spec.role,
        "origin": deployment.origin.file or f"deployment {deployment.name}",
        "model": deployment.model,
        "reads_model": spec.engine not in (ROUTER, *SERVICES),
        "names": NAMES,
        "ports": tuple(spec.ports.items()),
        "rdma": tuple(_devices(shown)),
        "program": program,
        "words": tuple(words),
        "env": shown,
        "options": container.options(spec, world, deployment, role),
        "env_options": container.environment(spec),
        "container_engine": text(spec.decisions, "container_engine"),
        "cache_folder": text(spec.decisions, "cache_folder"),
        "log_folder": text(spec.decisions, "log_folder").rstrip("/"),
        "venv": text(spec.decisions, "venv").rstrip("/"),
        "reasons": tuple(reasons(spec)),
        "secrets_file": spec.secrets_file,
    }


def _devices(env: Mapping[str, str]) -> Iterator[str]:
    """The RDMA devices that the worker was told to use, as the kernel names them."""
    listed = env.get("UCX_NET_DEVICES", "")
    for device in listed.split(","):
        name = device.partition(":")[0]
        if name and name != "all" and "*" not in name:
            yield name


def reasons(spec: Spec) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield what was chosen because of a fact, a rule or an operator, with its chain.

    What the deployment says and what an engine does by itself needs no explaining here;
    `bringup explain` prints the rest.
    """
    for name, chain in spec.command.why.items():
        if any(" said rule " in line or " said facts" in line for line in chain[:1]) or any(
            line.startswith("overrules ") for line in chain
        ):
            yield name, chain
