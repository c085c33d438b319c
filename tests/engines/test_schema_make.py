"""Lists of flags made from help texts, source texts and images, and the verb that makes them."""

from __future__ import annotations

import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from bringup.core.errors import UsageError
from bringup.core.script import Answer, Section
from bringup.edge.schema_source import from_source, make
from bringup.engines.inspection import asks, compared, file_name, read
from bringup.engines.schema import Flag, hold
from bringup.engines.schema_make import flags_in, from_help, variables_in

HELP = """usage: engine [-h] [--mode {null,prefill}] [--tp-size N]

options:
  -h, --help            show this help message and exit
  --model-path MODEL_PATH, --model MODEL_PATH
                        Where the weights are.
  --mode {null,prefill}
                        The role of this worker.
  --cache, --no-cache   Keep pages. (default: True)
  -tp, --tp-size N      GPUs.
  --kv {auto,fp8}, -k {auto,fp8}
                        Type of the cache.
  --paths [PATHS ...]   Any number of them.
  --old                 DEPRECATED: use --new.
"""

SERVER_ARGS = """
CHOICES = ["triton", "flashinfer"]

class ServerArgs:
    model_path: A[str, Arg(help="Weights.", aliases=["--model"])]
    attention_backend: A[Optional[str], Arg(help="Kernels.", choices=CHOICES)] = None
    mode: A[Literal["null", "prefill"], "The role."] = "null"
    trust_remote_code: A[bool, "Run code of the model."] = False
    fdfo: A[bool, Arg(help="First done.", action=argparse.BooleanOptionalAction)] = True
    internal: A[str, Arg(help="No flag.", no_cli=True)] = ""

def add_cli_args(parser):
    parser.add_argument("--old-name", action="store_true", help="Deprecated.")
    parser.add_argument("-q", "--quantization", choices=["fp8", "awq"])
    add_negatable_bool_argument(g, flag_name="--dyn-x", env_var="DYN_X", default=False, help="")
"""

ENVIRON = """
import os
environment_variables: dict = {"VLLM_PORT": lambda: 1, "not a name": 0}
A = os.getenv("SGLANG_A", "1")
B = os.environ["SGLANG_B"]
C = os.environ.get("SGLANG_C")
class Envs:
    SGLANG_D = EnvBool(False)
    helper = 1
"""


def by_name(flags: list[Flag]) -> dict[str, Flag]:
    return {flag.name: flag for flag in flags}


def test_a_help_text_gives_forms_choices_and_names() -> None:
    made = from_help(HELP, package="engine", version="1.0")
    assert made.flags == by_name([
        Flag("--model-path"), Flag("--model"),
        Flag("--mode", choices=("null", "prefill")),
        Flag("--cache", takes_value=False), Flag("--no-cache", takes_value=False),
        Flag("-tp"), Flag("--tp-size"),
        Flag("--kv", choices=("auto", "fp8")), Flag("-k", choices=("auto", "fp8")),
        Flag("--paths"), Flag("--old", takes_value=False, deprecated=True),
    ])  # fmt: skip
    assert made.variables is None


@pytest.mark.parametrize("text", ["", "Traceback (most recent call last):\n  File x\nImportError"])
def test_a_text_without_options_is_no_help(text: str) -> None:
    with pytest.raises(ValueError, match="no option"):
        from_help(text, package="engine", version="1.0")


def test_a_source_text_gives_its_literal_flags() -> None:
    assert by_name(list(flags_in(SERVER_ARGS))) == by_name([
        Flag("--model-path"), Flag("--model"),
        Flag("--attention-backend", choices=("triton", "flashinfer")),
        Flag("--mode", choices=("null", "prefill")),
        Flag("--trust-remote-code", takes_value=False),
        Flag("--fdfo", takes_value=False), Flag("--no-fdfo", takes_value=False),
        Flag("--old-name", takes_value=False, deprecated=True),
        Flag("-q", choices=("fp8", "awq")), Flag("--quantization", choices=("fp8", "awq")),
        Flag("--dyn-x", takes_value=False), Flag("--no-dyn-x", takes_value=False),
    ])  # fmt: skip


def test_a_source_text_gives_the_variables_it_reads() -> None:
    assert set(variables_in(ENVIRON)) == {
        "VLLM_PORT", "SGLANG_A", "SGLANG_B", "SGLANG_C", "SGLANG_D",
    }  # fmt: skip


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / "sglang-9.9.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("sglang/srt/server_args.py", SERVER_ARGS)
        archive.writestr("sglang/srt/environ.py", ENVIRON)
        archive.writestr("sglang/broken.py", "def (:")
        archive.writestr("elsewhere/args.py", 'p.add_argument("--not-ours")')
    return path


def test_a_wheel_gives_flags_and_variables(wheel: Path) -> None:
    made = from_source(wheel, package="sglang", version="9.9")
    assert "--model-path" in made.flags
    assert "--not-ours" not in made.flags
    assert made.variables is not None
    assert "SGLANG_B" in made.variables


def test_help_gives_the_flags_and_the_wheel_the_variables(wheel: Path, tmp_path: Path) -> None:
    text = tmp_path / "help.txt"
    text.write_text(HELP)
    made = make("sglang", "9.9", help_text=str(text), source=str(wheel))
    assert "--attention-backend" not in made.flags
    assert "SGLANG_B" in (made.variables or ())


@pytest.mark.parametrize(
    ("package", "help_text", "source", "says"),
    [
        ("vllm", "", "/nowhere", "make|cannot read flags of 'vllm'"),
        ("sglang", "", "/nowhere", "cannot read /nowhere"),
        ("sglang", "/nowhere", "", "cannot read flags from /nowhere"),
        ("sglang", "", "", "of nothing"),
    ],
)
def test_a_source_that_gives_nothing_is_an_error(
    package: str, help_text: str, source: str, says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        make(package, "1.0", help_text=help_text, source=source)


def answer(*sections: tuple[str, int | None, str]) -> Answer:
    return Answer({n: Section(n, exit_, text) for n, exit_, text in sections}, complete=True)


def test_an_image_answers_with_version_and_flags() -> None:
    told = answer(("version sglang", 0, "0.5.18+k3\n"), ("help sglang", 0, HELP))
    (found,) = read(told, ["sglang"], image="k3:1")
    assert found.schema is not None
    assert found.schema.version == "0.5.18+k3"
    assert found.schema.source == "--help inside k3:1"


@pytest.mark.parametrize(
    ("told", "says"),
    [
        (answer(("version sglang", 1, "Traceback\nPackageNotFoundError: sglang")),
         "no version of sglang: PackageNotFoundError: sglang"),
        (answer(("version sglang", 0, "0.5.18"), ("help sglang", 1, "ImportError: libcuda.so.1")),
         "no help of sglang 0.5.18: ImportError: libcuda.so.1"),
        (answer(("version sglang", 0, "0.5.18"), ("help sglang", 124, "")),
         "no help of sglang 0.5.18: timed out"),
        (answer(), "no version of sglang: the answer was cut off"),
    ],
)  # fmt: skip
def test_an_image_that_cannot_answer_says_why(told: Answer, says: str) -> None:
    (found,) = read(told, ["sglang"], image="k3:1")
    assert found.schema is None
    assert found.trouble == says


def test_a_fork_is_compared_with_the_published_list() -> None:
    held = hold("sglang", "0.5.18")
    assert held.exact is not None
    flags = {n: f for n, f in held.exact.flags.items() if n != "--page-size"}
    fork = replace(held.exact, flags={**flags, "--k3-only": Flag("--k3-only")})
    assert compared(fork, held) == (("--k3-only",), ("--page-size",))


def test_each_package_is_asked_for_version_and_help() -> None:
    assert [ask.name for ask in asks(["dynamo.sglang"])] == [
        "version dynamo.sglang",
        "help dynamo.sglang",
    ]
    assert "ai-dynamo" in asks(["dynamo.sglang"])[0].script


def test_an_answer_has_a_file_of_its_own() -> None:
    name = file_name("registry:5000/dynamo-sglang-k3:1.3.0.post1", "sglang")
    assert name == "registry_5000_dynamo-sglang-k3_1.3.0.post1--sglang.json"
