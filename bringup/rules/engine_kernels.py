"""Which kernels can run: what follows where no CUDA compiler is beside the engine."""

from __future__ import annotations

from ..core.host import Deployment, Role, Scalar
from ..core.reading import Absent, Known, Unknown, evidence_of
from ..core.rules import Level, Row, Seen, Status, World, failed, passed, unknown, warned
from ..core.version import at_least
from .checks_jit_compiler import PARTS
from .toolchain import driver_cuda, packages
from .where import SGLANG, VLLM, for_worker, is_kimi_k3, toolkit_floor, usable_nvcc

NO_NVCC = "docs/engines.md#no-cuda-compiler-where-the-engine-runs"
K3 = "docs/engines.md#kimi-k3"
INSTALL = "install a CUDA toolkit where the engine runs"
LOOK_INSIDE = (
    "state nvcc: in images/NAME/image.yml (a version, or none), "
    "or ask the image: bringup engine.inspect IMAGE --host HOST"
)


def _install(world: World) -> str:
    floor, cuda = toolkit_floor(world), driver_cuda(world)
    fits = f" (the toolkit package alone; {cuda} fits this driver)" if cuda else ""
    return (f"{INSTALL}, {floor} or later" if floor else INSTALL) + fits


def _fp8_experts(deployment: Deployment) -> dict[str, Scalar]:
    """FP8 experts have a Triton path; the automatic order tries FlashInfer's first."""
    named = "fp8" in deployment.model.path.lower() and deployment.model.mixture_of_experts
    return {"moe_backend": "triton"} if named else {}


def _prebuilt(world: World, deployment: Deployment) -> str:
    """Return what shows that FlashInfer's kernels need no compiler, or ""."""
    if deployment.image.flashinfer == "prebuilt":
        return f"image {deployment.image.name} states flashinfer: prebuilt"
    reading = packages(world)
    if not isinstance(reading, Known):
        return ""
    found = [reading.value.versions.get(part, "").partition("+")[0] for part in PARTS]
    return f"{', '.join(PARTS)} are all {found[0]}" if found[0] and len(set(found)) == 1 else ""


@for_worker
def _vllm(world: World, deployment: Deployment, role: Role) -> Seen | None:
    del role
    if deployment.engine not in VLLM or is_kimi_k3(deployment):
        return None
    nvcc = usable_nvcc(world)
    if isinstance(nvcc, Unknown):
        return _not_told(nvcc)
    if not isinstance(nvcc, Absent):
        return None
    if prebuilt := _prebuilt(world, deployment):
        return passed(evidence_of(nvcc), f"FlashInfer is kept: {prebuilt}")
    choices: dict[str, Scalar] = {
        "attention_backend": "triton",
        "flashinfer_sampler": False,
        "deep_gemm": False,
        **_fp8_experts(deployment),
    }
    if at_least(deployment.image.engine_version, "0.23.0"):
        choices["flashinfer_autotune"] = False
    if deployment.model.hybrid and at_least(deployment.image.engine_version, "0.23.0"):
        choices["gdn_prefill_backend"] = "triton"
    return warned(evidence_of(nvcc), decide=choices, remedy=_install(world))


@for_worker
def _sglang(world: World, deployment: Deployment, role: Role) -> Seen | None:
    del role
    if deployment.engine != SGLANG or is_kimi_k3(deployment):
        return None
    nvcc = usable_nvcc(world)
    if isinstance(nvcc, Unknown):
        return _not_told(nvcc)
    if not isinstance(nvcc, Absent):
        return None
    choices: dict[str, Scalar] = {
        "attention_backend": "triton",
        "flashinfer_sampler": False,
        "flashinfer_autotune": False,
        "linear_backend": "triton",
        "deep_gemm": False,
    }
    if deployment.model.mixture_of_experts:
        choices["moe_backend"] = "triton"
    if deployment.model.hybrid:
        choices["mamba_backend"] = "triton"
    return warned(evidence_of(nvcc), decide=choices, remedy=_install(world))


@for_worker
def _kimi(world: World, deployment: Deployment, role: Role) -> Seen | None:
    del role
    if not is_kimi_k3(deployment):
        return None
    nvcc = usable_nvcc(world)
    if isinstance(nvcc, Unknown):
        return unknown(nvcc.why)
    if isinstance(nvcc, Absent):
        return failed(evidence_of(nvcc), remedy=_install(world))
    return passed(evidence_of(nvcc))


def _not_told(nvcc: Unknown) -> Seen:
    """No fallback on what nobody looked at: it would cost speed on an image that has nvcc."""
    return unknown(nvcc.why, "no Triton fallback is chosen on an unknown")


BACK = "nvcc installed: FlashInfer again"
AGAIN = "once nvcc is there, the next run chooses FlashInfer again by itself"

ROWS: tuple[Row[World], ...] = (
    Row(
        id="vllm-without-nvcc",
        title="vLLM without a CUDA compiler",
        look=_vllm,
        reason="FlashInfer compiles its sampler and attention kernels on first use, by nvcc; "
        "vLLM chooses it on Blackwell without looking for nvcc",
        remedy=LOOK_INSIDE,
        source=NO_NVCC,
        follow_up=AGAIN,
        lifted=BACK,
    ),
    Row(
        id="sglang-without-nvcc",
        title="SGLang without a CUDA compiler",
        look=_sglang,
        reason="SGLang compiles kernels at run time by nvcc, more of them with each version; "
        "these choices avoid the known ones and may not be enough",
        remedy=LOOK_INSIDE,
        source=NO_NVCC,
        follow_up=AGAIN,
        lifted=BACK,
    ),
    Row(
        id="kimi-k3-needs-nvcc",
        title="Kimi K3 needs a CUDA compiler",
        look=_kimi,
        reason="K3 has kernels that only compile at run time, in every version; "
        "Triton attention does not replace them",
        remedy=LOOK_INSIDE,
        source=K3,
        levels={Status.UNKNOWN: Level.BLOCK},
    ),
)
