"""The words of ``vllm bench serve``, and what the image's version would refuse of them."""

from __future__ import annotations

from dataclasses import dataclass

from ..core.host import Deployment
from ..core.rules import Finding, Level
from ..engines.check import Dialect, findings
from ..engines.engine import CommandLine
from ..engines.words import flexible
from .traffic import Traffic

PACKAGE = "vllm-bench"
DIALECT = Dialect((PACKAGE,), prefixes=("VLLM_",), spelling=flexible)
PERCENTILES = "50,95,99"
"""Without being asked it tells the 99th alone."""

FOLDER = "/tmp/bringup-bench"  # noqa: S108 - beside the engine; each run's file has its own name


@dataclass(frozen=True, slots=True)
class Place:
    """Where requests go, as the worker sees it, and what the model is called there."""

    url: str
    served_name: str
    model: str  # path or name, which holds the tokenizer
    trusts: bool = False  # the model's own Python files may run


def place_of(deployment: Deployment, url: str) -> Place:
    """Return the place of a deployment whose requests go to a URL."""
    model = deployment.model
    said = [deployment.knobs, *(role.knobs for role in deployment.roles)]
    trusts = any(knobs.get("trust_remote_code") is True for knobs in said)
    return Place(url, model.served_name, model.path, trusts)


def bench_words(place: Place, traffic: Traffic, file: str) -> tuple[str, ...]:
    """Return the command: the report's, with percentiles and a result file.

    The report's is ``vllm bench serve --dataset-name random --request-rate inf --ignore-eos``;
    flags and result keys are those of vllm/benchmarks/serve.py, 0.24.0 and 0.33.0.
    """
    return (
        "vllm", "bench", "serve",
        "--base-url", place.url,
        "--model", place.model,
        "--served-model-name", place.served_name,
        *(("--trust-remote-code",) if place.trusts else ()),
        "--dataset-name", "random",
        "--random-input-len", str(traffic.input_tokens),
        "--random-output-len", str(traffic.output_tokens),
        "--num-prompts", str(traffic.prompts),
        "--request-rate", "inf",
        "--ignore-eos",
        "--percentile-metrics", "ttft,tpot,itl",
        "--metric-percentiles", PERCENTILES,
        "--disable-tqdm",
        "--save-result", "--result-dir", FOLDER, "--result-filename", file,
    )  # fmt: skip


def refusals(words: tuple[str, ...], version: str) -> tuple[Finding, ...]:
    """Return what a version of vLLM would stop at in such a command."""
    found = findings(CommandLine(words, program=3), {PACKAGE: version}, DIALECT)
    return tuple(finding for finding in found if finding.level is Level.BLOCK)
