"""What somebody wants to serve, in a case's own words, as a deployment."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ...core.facts import Facts
from ...core.host import Deployment, Image, Mode, Model, Role, Scalar, Services
from ...core.reading import Known
from ..containers import Containers
from ..inside import Inside
from ..model import ModelFolder
from ..network import Reach
from ..services import Etcd, Nats
from ..serving import Serving
from .files import Weight

ENGINES: Mapping[str, str] = {
    "vllm": "vllm",
    "sglang": "dynamo.sglang",
    "dynamo+sglang": "dynamo.sglang",
    "dynamo.sglang": "dynamo.sglang",
    "dynamo+vllm": "dynamo.vllm",
    "dynamo.vllm": "dynamo.vllm",
}
"""Engines by what people call them."""

OTHER = "other-host"
"""The second host of a pair, of which a case says nothing."""

_SIZES = {
    "TP": "tensor_parallel", "PP": "pipeline_parallel", "DP": "data_parallel",
    "EP": "expert_parallel_size",
}  # fmt: skip


def deployment_of(target: Mapping[str, object], host: str, facts: Facts) -> Deployment:
    """Return the deployment that a target means; words that mean nothing here are left out."""
    words = {key: str(value) for key, value in target.items()}
    engine = words.get("engine", "").lower()
    return Deployment(
        "case",
        ENGINES.get(engine, engine),
        _model(words, facts),
        Image("case", engine_version=words.get("engine_version", "")),
        _roles(words, host),
        _services(facts),
        in_container=_in_container(words, facts),
        knobs=_numbers(target),
    )


def _numbers(target: Mapping[str, object]) -> dict[str, Scalar]:
    """Limits that a target states, such as outer_health_limit_s."""
    return {
        key: value
        for key, value in target.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }


def _services(facts: Facts) -> Services:
    """Services that somebody asked are those that the deployment uses."""
    etcd, nats = facts[Etcd], facts[Nats]
    members = etcd.value.members if isinstance(etcd, Known) else ()
    server = nats.value.endpoint if isinstance(nats, Known) else _asked_nats(facts)
    return Services(tuple(member.endpoint for member in members), server)


def _asked_nats(facts: Facts) -> str:
    """NATS that somebody tried to reach, by its usual port."""
    reach = facts[Reach]
    met = reach.value.met if isinstance(reach, Known) else {}
    return next((f"nats://{target}" for target in met if target.endswith(":4222")), "")


def _model(words: Mapping[str, str], facts: Facts) -> Model:
    text = words.get("model", "")
    serving, folder, weight = facts[Serving], facts[ModelFolder], facts[Weight]
    paths = (
        serving.value.model_path if isinstance(serving, Known) else "",
        folder.value.path if isinstance(folder, Known) else "",
        weight.value.path if isinstance(weight, Known) else "",
    )
    path = next(filter(None, paths), "")
    name = words.get("served_model_name", "") or text
    return Model(
        name,
        words.get("model_path", path),
        architecture="kimi_k3" if re.search(r"(?i)kimi[-_ ]?k3", f"{name} {text}") else "",
        weights_gib=weight.value.bytes / 1024**3 if isinstance(weight, Known) else None,
        mixture_of_experts=bool(re.search(r"(?i)\bmoe\b|expert", text)),
        hybrid=bool(re.search(r"(?i)mamba|hybrid|linear attention", text)),
    )


def _in_container(words: Mapping[str, str], facts: Facts) -> bool:
    """Tell where the engine runs; where the target is silent, a container that was looked into."""
    where = words.get("run_as", "").lower()
    if re.search(r"\bno container|venv|virtual environment|on the host", where):
        return False
    if re.search(r"docker|container|podman|image", where):
        return True
    looks = isinstance(facts[Inside], Known) or isinstance(facts[Containers], Known)
    return looks or bool(words.get("image"))


def _roles(words: Mapping[str, str], host: str) -> tuple[Role, ...]:
    text = words.get("parallel", "")
    knobs = _sizes(text)
    nodes = _nodes(text)
    if re.search(r"(?i)prefill|decode|disaggregat|\bPD\b|1P1D", text):
        return _pair(text, host, knobs)
    worker = (host, *(f"{OTHER}-{n}" for n in range(2, nodes + 1)))
    return (Role("worker", Mode.AGGREGATED, (worker,), knobs=knobs),)


_NUMBERS = {"two": 2, "three": 3, "four": 4, "eight": 8}


def _nodes(text: str) -> int:
    """Read how many hosts one worker takes: ``x 2 nodes``, ``over two hosts``."""
    found = re.search(r"(?i)\b(\d+|two|three|four|eight)\s+(?:nodes|hosts)", text)
    word = found[1].lower() if found else "1"
    return _NUMBERS.get(word) or int(word)


def _pair(text: str, host: str, knobs: Mapping[str, Scalar]) -> tuple[Role, ...]:
    """A pair on two hosts, unless the words say that both sides share this one."""
    same = re.search(r"(?i)same (?:node|host)|one (?:node|host)", text)
    second = host if same else OTHER
    decodes = re.search(r"(?i)decode on this", text)
    first, last = (second, host) if decodes else (host, second)
    return (
        Role("prefill", Mode.PREFILL, ((first,),), knobs=knobs),
        Role("decode", Mode.DECODE, ((last,),), knobs=knobs),
    )


def _sizes(text: str) -> dict[str, Scalar]:
    """Read ``TP=8``, ``DP=2 or TP=2`` (the first one counts), ``TP8``, ``TP=8 DP attention``."""
    first = re.split(r"\bor\b", text)[0]
    inside = re.search(r"(?i)\b(?:dp|data.parallel)[-_ ]?attention\b", first)
    attention: dict[str, Scalar] = {"data_parallel_attention": True} if inside else {}
    found = re.findall(r"\b(TP|PP|DP|EP)\s*=?\s*(\d+)", first)
    spelt = re.findall(
        r"(?i)\b(t|p|d|e)(?:ensor|ipeline|ata|xpert)[-_ ]parallel(?:[-_ ]size)?[= ]+(\d+)", first
    )
    found += [(f"{letter.upper()}P", size) for letter, size in spelt]
    return {**attention, **{_SIZES[name]: int(size) for name, size in found}}
