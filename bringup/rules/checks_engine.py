"""ENG-01 to ENG-04: does this version of the engine do what is wanted, as it stands here?"""

from __future__ import annotations

from ..core.host import Deployment, Role
from ..core.reading import Known
from ..core.rules import Row, Seen, Status, World, failed, passed, skipped
from ..core.version import within
from ..probes.environment import Environment
from ..probes.packages import PythonPackages
from . import where
from .command_lines import unread_variables
from .engine_model import SUITED, moe_copies
from .judging import QUIET, not_told, unread

LAYOUT = "VLLM_SSM_CONV_STATE_LAYOUT"


def _copies(world: World) -> Seen:
    seen = moe_copies(world)
    if seen is None:
        return skipped("no copies of a mixture of experts on vLLM are wanted")
    # what nobody reported of this version is told by the rule of a deployment, not by a check
    return seen if seen.status is Status.FAIL else passed(*seen.evidence)


def _layout(world: World) -> Seen:
    deployment, role = world.deployment, world.role
    if deployment is None or role is None or not _moves_state(deployment, role):
        return skipped("no hybrid model goes through vLLM's NIXL connector")
    reading = world.facts[Environment]
    if not isinstance(reading, Known):
        return unread(reading)
    value = reading.value.values.get(LAYOUT, "")
    if value == "DS":
        return passed(f"{LAYOUT}=DS")
    if value or reading.value.is_unset(LAYOUT):
        return failed(f"{LAYOUT} is {value or 'not set'}; the model has convolution state")
    return not_told(f"whether {LAYOUT} is set")


def _moves_state(deployment: Deployment, role: Role) -> bool:
    return deployment.engine in where.VLLM and where.is_pair(role) and deployment.model.hybrid


def _variables(world: World) -> Seen:
    reading = world.facts[Environment]
    if world.deployment is None:
        return skipped("nothing is to be served here")
    if not isinstance(reading, Known):
        return unread(reading)
    idle = tuple(unread_variables(reading.value.values, world.deployment))
    if idle:
        return failed(*idle)
    return passed(*reading.value.values) if reading.value.values else passed("none is set")


def _suited(world: World) -> Seen:
    reading = world.facts[PythonPackages]
    if not isinstance(reading, Known):
        return unread(reading)
    versions = reading.value.versions
    dynamo, sglang = versions.get("ai-dynamo", ""), versions.get("sglang", "")
    if not dynamo or not sglang:
        return skipped("Dynamo and SGLang are not both here")
    what = f"ai-dynamo {dynamo} with sglang {sglang}"
    for since, until, first, end in SUITED:
        if within(dynamo, since, until):
            return passed(what) if within(sglang, first, end) else failed(what)
    return not_told(f"{what}: nobody has tried this Dynamo version")


ROWS: tuple[Row[World], ...] = (
    Row(
        "ENG-01", "Copies of a mixture of experts start", _copies,
        "on vLLM 0.24 both attempts died at start: a MoE warm-up assertion, then the MoE forward "
        "while memory was profiled",
        "2×B200 report", "use tensor_parallel in place of data_parallel, or a newer vLLM",
    ),
    Row(
        "ENG-02", "Convolution state has the layout that NIXL moves", _layout,
        "the NIXL connector asserts layout DS for models with Mamba-like state, on both sides",
        "2×B200 report", f"set {LAYOUT}=DS for prefill and decode",
    ),
    Row(
        "ENG-03", "Dynamo and SGLang suit each other", _suited,
        "Dynamo 1.3 imports modules that SGLang moved in 0.5.19; Dynamo 1.6 needs the new place",
        "docs/engines.md#pairs",
        "use SGLang 0.5.14 to 0.5.18 with Dynamo 1.3, 0.5.19 or later with Dynamo 1.6",
        QUIET,
    ),
    Row(
        "ENG-04", "Variables that are set are read by this version", _variables,
        "a variable that went away does nothing, and the engine chooses what it was to keep it "
        "from: FlashInfer in place of Triton, on a host without nvcc",
        "docs/engines.md#what-each-version-accepts", "take it out, and set the knob", QUIET,
    ),
)  # fmt: skip
