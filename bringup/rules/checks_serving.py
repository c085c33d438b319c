"""NET-09 and NET-10: how far has a deployment come up, and why does its model not appear?"""

from __future__ import annotations

import re

from ..core.reading import Absent, Known, Unknown
from ..core.rules import Level, Row, Seen, Status, World, failed, passed
from ..probes.services import Etcd
from ..probes.serving import Serving
from .judging import not_told, unread

K3_REPORT = "K3 report"
NEEDED = ("config.json", "generation_config.json", "tokenizer_config.json")
PLAIN = re.compile(r"sglang\.launch_server|vllm(?:\.entrypoints| serve)")


def _name(world: World, serving: Serving) -> str:
    own = world.deployment.model.served_name if world.deployment else ""
    return serving.served_name or own


def _stage(world: World) -> Seen:
    reading, etcd = world.facts[Serving], world.facts[Etcd]
    if not isinstance(reading, Known):
        return unread(reading)
    serving = reading.value
    steps = []
    if isinstance(etcd, Known):
        healthy, members = len(etcd.value.healthy), len(etcd.value.members)
        steps.append(f"etcd: {healthy} of {members} healthy")
    if isinstance(serving.instances, Known):
        steps.append(f"registered: {', '.join(serving.instances.value) or 'nobody'}")
    if isinstance(serving.models, Known):
        steps.append(f"listed: {', '.join(serving.models.value) or 'no model'}")
        if serving.models.value:
            return passed(*steps)
    if not steps:
        return not_told("how far the deployment has come up")
    return Seen(Status.UNKNOWN, tuple(steps), level=Level.NOTE)


def _listed(world: World) -> Seen:
    reading = world.facts[Serving]
    if not isinstance(reading, Known):
        return unread(reading)
    serving = reading.value
    if not isinstance(serving.models, Known):
        return not_told("the frontend's list of models")
    models, wanted = serving.models.value, _name(world, serving)
    if models:
        if wanted and wanted not in models:
            return failed(f"listed: {', '.join(models)}, not {wanted}", remedy=NAMES)
        return passed(f"listed: {', '.join(models)}")
    if serving.command and PLAIN.search(" ".join(serving.command)):
        line = " ".join(serving.command[:4])
        return failed(f"the worker runs {line}", "a plain server never registers", remedy=DYNAMO)
    if not isinstance(serving.instances, Known):
        return not_told("whether workers have registered; an empty list is normal while one loads")
    if not serving.instances.value:
        why = "no worker has registered: it still loads, or it never will (look at its log)"
        return Seen(Status.UNKNOWN, (why,), level=Level.BLOCK)
    return _unpublished(serving, serving.instances.value)


def _unpublished(serving: Serving, instances: tuple[str, ...]) -> Seen:
    """Workers are registered and no model is listed: look for files on the frontend first."""
    lines = [f"registered: {', '.join(instances)}; listed: no model"]
    path = serving.model_path or "the worker's model path"
    files = serving.frontend_files
    if isinstance(files, Absent):
        lines.append(f"the frontend has no {path}: {files.evidence}")
    elif isinstance(files, Known):
        gone = _lacks(files.value)
        lines.append(f"the frontend's {path} lacks {', '.join(gone)}" if gone
                     else f"the frontend has the files in {path}")  # fmt: skip
    elif isinstance(files, Unknown):
        lines.append(f"whether the frontend has {path} was not told")
    if isinstance(serving.worker_files, Known) and _only_tiktoken(serving.worker_files.value):
        lines.append("the tokenizer is a tiktoken file only: Dynamo must know this model type")
    if serving.hub_offline:
        lines.append("HF_HUB_OFFLINE is set: the frontend cannot look the model up elsewhere")
    return failed(*lines, remedy=BUNDLE)


def _lacks(names: tuple[str, ...]) -> list[str]:
    gone = [name for name in NEEDED if name not in names]
    has_tokenizer = any(n == "tokenizer.json" or "tiktoken" in n or n.endswith(".model")
                        for n in names)  # fmt: skip
    return gone if has_tokenizer else [*gone, "a tokenizer"]


def _only_tiktoken(names: tuple[str, ...]) -> bool:
    return "tokenizer.json" not in names and any("tiktoken" in name for name in names)


BUNDLE = (
    "copy configuration and tokenizer files (no weights, about 1.4 MB) to the identical path on "
    "the frontend: bringup bundle.push; if they are there already, see "
    "https://github.com/ai-dynamo/dynamo/issues/11178"
)
NAMES = "start both workers with the same --served-model-name"
DYNAMO = "start it with python3 -m dynamo.sglang (or dynamo.vllm)"

ROWS: tuple[Row[World], ...] = (
    Row(
        "NET-09",
        "The deployment comes up stage by stage",
        _stage,
        reason="etcd, registration, model list and one answer follow each other; the first stage "
        "that is missing names the cause",
        source=K3_REPORT,
        remedy="look at the log of the stage that is missing",
    ),
    Row(
        "NET-10",
        "The model of registered workers is listed",
        _listed,
        reason="the frontend builds the model card from files at the worker's model path; without "
        "them a sound worker stays invisible",
        source="https://github.com/ai-dynamo/dynamo/issues/10805",
        remedy=BUNDLE,
    ),
)
