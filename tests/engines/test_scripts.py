"""The written scripts: golden texts, shell lint, and what they print under dash."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bringup.core.host import Deployment
from bringup.core.rules import World, judge
from bringup.core.words import Secret
from bringup.edge.render import Renderer
from bringup.engines import ENGINES
from bringup.engines.settle import settled
from bringup.engines.spec import Spec, specify
from bringup.engines.values import values
from bringup.rules import fallbacks
from tests.conftest import ROOT, Golden

from .situations import DP2, K3, PD1, TP2, world

SHELLCHECK = Path(sys.executable).with_name("shellcheck")  # beside python, whatever PATH is
RENDERER = Renderer(ROOT / "templates")
CASES = [
    (K3, "prefill"),
    (K3, "decode"),
    (DP2, "serve"),
    (TP2, "serve"),
    (PD1, "prefill"),
    (PD1, "decode"),
    (replace(K3, name="kimi-k3-venv", in_container=False), "decode"),
]


def rendered(deployment: Deployment, seen: World) -> tuple[Spec, str]:
    """Go the whole way from facts to a script's text."""
    findings = judge(fallbacks.ROWS, seen, host=seen.host.name)
    engine, chosen = ENGINES[deployment.engine], seen.role
    assert chosen is not None
    spec = specify(engine, deployment, chosen, seen, settled(seen, findings), peers={})
    given = values(spec, seen, deployment, chosen, tool="bringup 0.1.0")
    return spec, RENDERER.text(spec.template, given)


def made(deployment: Deployment, role: str) -> tuple[Spec, str]:
    return rendered(deployment, world(deployment, role))


def names(case: tuple[Deployment, str]) -> str:
    return f"{case[0].name}-{case[1]}"


def split_by_shell(text: str) -> tuple[str, ...]:
    """Return the words that a shell makes of a printed command."""
    apart = 'eval "set -- $(cat)"; printf "%s\\0" "$@"'
    done = subprocess.run(
        ["dash", "-c", apart], input=text, capture_output=True, text=True, check=True
    )
    return tuple(done.stdout.split("\0")[:-1])


@pytest.mark.parametrize("case", CASES, ids=names)
def test_script_is_as_reviewed(case: tuple[Deployment, str], golden: Golden) -> None:
    spec, text = made(*case)
    golden(f"{spec.deployment}/{spec.script_name}", text)


@pytest.mark.parametrize("case", CASES, ids=names)
def test_script_passes_shellcheck(case: tuple[Deployment, str], tmp_path: Path) -> None:
    path = tmp_path / "script.sh"
    path.write_text(made(*case)[1])
    done = subprocess.run([SHELLCHECK, path], capture_output=True, text=True, check=False)
    assert done.stdout == ""


@pytest.mark.parametrize("case", CASES, ids=names)
@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_print_shows_the_words_of_the_spec(
    case: tuple[Deployment, str], shell: str, tmp_path: Path
) -> None:
    spec, text = made(*case)
    path = tmp_path / "script.sh"
    path.write_text(text)
    done = subprocess.run([shell, path, "--print"], capture_output=True, text=True, check=True)
    words = split_by_shell(done.stdout)
    _, *rest = spec.command.argv
    assert words[-len(rest) :] == tuple(rest)
    for name, value in spec.command.env.items():
        assert isinstance(value, Secret) or f"{name}={value}" in words
