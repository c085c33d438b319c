"""NET-09 and NET-10: how far has a deployment come up, and why does its model not appear?"""

from __future__ import annotations

import re

from ..core.reading import Absent, Known, Unknown
from ..core.rules import Level, Row, Seen, Status, World, failed, passed
from ..probes.parts import NOT_ASKED
from ..probes.services import Etcd
from ..probes.serving import NO_ANSWER, Serving
from . import where
from .command_lines import differences, refused, same_mode, sides_of
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
            return _answered(serving, steps)
    if not steps:
        return not_told("how far the deployment has come up")
    return Seen(Status.UNKNOWN, tuple(steps), level=Level.NOTE)


def _answered(serving: Serving, steps: list[str]) -> Seen:
    """A listed model is not a served one: judge by the request that somebody sent."""
    if not serving.answer or serving.answer.startswith("HTTP 2"):
        return passed(*steps)
    remedy = ANSWERS.get(serving.answer, "read the frontend's log, then the workers'")
    return failed(*steps, f"a request: {serving.answer}", remedy=remedy)


ANSWERS = {
    NO_ANSWER: "let the workers' hosts reach the frontend's DYN_TCP_RESPONSE_STREAM_PORT, and see "
    "that KV travels from prefill to decode (their logs)",
    "HTTP 503": "one side of the pair is missing: see who is registered, and its log",
    "HTTP 404": "the frontend lacks the model's files: bringup bundle.doctor",
    "HTTP 500": "set the same request plane on both (DYN_REQUEST_PLANE), and let the frontend "
    "reach the port that the worker announces",
    "HTTP 504": "let the frontend reach the port that the worker announces (rpc_port)",
}


def _listed(world: World) -> Seen:
    reading = world.facts[Serving]
    if not isinstance(reading, Known):
        return unread(reading)
    serving = reading.value
    if isinstance(serving.models, Unknown) and serving.models != NOT_ASKED:
        return failed(f"the frontend does not answer: {serving.models.why}", remedy=FRONTEND)
    if not isinstance(serving.models, Known):
        return not_told("the frontend's list of models")
    models, wanted = serving.models.value, _name(world, serving)
    if models:
        if wanted and wanted not in models:
            return failed(f"listed: {', '.join(models)}, not {wanted}", remedy=NAMES)
        return passed(f"listed: {', '.join(models)}")
    return _why_started_wrong(serving) or _why_unlisted(world, serving)


def _why_started_wrong(serving: Serving) -> Seen | None:
    """Look at how workers were started: that alone may keep a model from being listed."""
    if serving.command and PLAIN.search(" ".join(serving.command)):
        line = " ".join(serving.command[:4])
        return failed(f"the worker runs {line}", "a plain server never registers", remedy=DYNAMO)
    if names := [line for line in differences(serving) if line.startswith(NAME_FLAG)]:
        return failed("listed: no model", *names, remedy=NAMES)
    if mode := same_mode(serving):
        return failed("listed: no model", f"both workers run as {mode}", remedy=ONE_OF_EACH)
    return None


def _why_unlisted(world: World, serving: Serving) -> Seen:
    if not isinstance(serving.instances, Known):
        return not_told("whether workers have registered; an empty list is normal while one loads")
    instances = serving.instances.value
    if not instances:
        why = "no worker has registered: it still loads, or it never will (look at its log)"
        return Seen(Status.UNKNOWN, (why,), level=Level.BLOCK)
    side = "" if _has_no_files(serving) else _missing(world, instances)
    if side:
        here = f"registered: {', '.join(instances)}; no {side} worker"
        why = "the list stays empty until both sides are there; it still loads, or never will"
        return Seen(Status.UNKNOWN, (here, why), level=Level.BLOCK)
    return _unpublished(serving, instances)


def _has_no_files(serving: Serving) -> bool:
    files = serving.frontend_files
    return isinstance(files, Absent) or (isinstance(files, Known) and bool(_lacks(files.value)))


def _missing(world: World, instances: tuple[str, ...]) -> str:
    """Return the side of a pair of which nobody has registered, "" where both have."""
    if world.role is None or not where.is_pair(world.role):
        return ""
    components = {instance.partition("/")[0] for instance in instances}
    if "prefill" not in components:
        return "prefill"
    return "" if components & {"backend", "decode"} else "decode"


def _fit(world: World) -> Seen:
    """Judge the command lines that workers run with: each by itself, then both of a pair."""
    reading = world.facts[Serving]
    if not isinstance(reading, Known):
        return unread(reading)
    serving = reading.value
    if world.deployment is None or not (serving.command or sides_of(serving)):
        return not_told("what the workers were started with")
    wrong = [*differences(serving), *refused(serving, world.deployment)]
    if wrong:
        return failed(*wrong)
    told = ", ".join(sides_of(serving)) or "worker"
    return passed(f"the command lines of: {told}")


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

FRONTEND = "start the frontend, or ask the address and port that it listens on: ss -ltnp"
ONE_OF_EACH = "start one with --disaggregation-mode prefill, the other with decode"
NAME_FLAG = "--served-model-name"

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
    Row(
        "NET-11",
        "Workers run with command lines that fit",
        _fit,
        reason="KV pages of another size or type cannot be read, another name is never found, and "
        "a flag that excludes another ends a worker at its start",
        source="docs/engines.md#pairs",
        remedy="start both by the scripts that provision writes",
    ),
)
