"""The written scripts: golden texts, shell lint, and what they print under dash."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from jinja2 import nodes

from bringup.core.errors import TemplateError
from bringup.core.host import Deployment
from bringup.core.rules import World, judge
from bringup.core.words import Secret
from bringup.edge.render import FILTERS, Renderer, unit
from bringup.engines import ENGINES
from bringup.engines.settle import settled
from bringup.engines.spec import UNIT, Spec, specify
from bringup.engines.values import values
from bringup.rules import fallbacks
from tests.conftest import ROOT, Golden

from .situations import DP2, K3, PD1, TP2, role, world

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


def test_unit_is_as_reviewed(golden: Golden) -> None:
    made_ = replace(K3, knobs={"service": True})
    spec, _ = made(made_, "decode")
    seen = world(made_, "decode")
    assert seen.role is not None
    given = values(spec, seen, made_, seen.role, tool="bringup 0.1.0")
    assert spec.unit == "/etc/systemd/system/bringup-kimi-k3-decode.service"
    golden(f"kimi-k3/{spec.unit_name}", RENDERER.text(UNIT, given))


@pytest.mark.parametrize(
    "template", sorted(p.relative_to(ROOT / "templates") for p in ROOT.rglob("templates/**/*.j2")),
    ids=str,
)  # fmt: skip
def test_every_value_in_a_template_passes_a_filter(template: Path) -> None:
    source = (ROOT / "templates" / template).read_text()
    for output in RENDERER.environment.parse(source).find_all(nodes.Output):
        for node in output.nodes:
            written = isinstance(node, nodes.TemplateData)
            ours = isinstance(node, nodes.Filter) and node.name in FILTERS
            assert written or ours, f"{template}:{node.lineno}"


NASTY = 'x\'; touch PWNED; \n echo "$(touch PWNED)" `touch PWNED` #'


@pytest.mark.parametrize("contained", [True, False])
def test_no_word_of_an_inventory_leaves_its_place(contained: bool, tmp_path: Path) -> None:
    """Whatever stands in the inventory is one word: nothing of it runs."""
    base = replace(K3, in_container=contained, model=replace(K3.model, served_name=NASTY))
    one = role(base, "decode", flags={"log-level": NASTY}, env={"UCX_LOG_FILE": NASTY})
    _, text = rendered(one, world(one, "decode"))
    path = tmp_path / "script.sh"
    path.write_text(text)
    done = subprocess.run(
        ["dash", path, "--print"], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    words = split_by_shell(done.stdout)
    assert words.count(NASTY) == 2
    assert f"UCX_LOG_FILE={NASTY}" in words
    assert sorted(p.name for p in tmp_path.iterdir()) == ["script.sh"]
    lint = subprocess.run(
        [SHELLCHECK, "-S", "error", path], capture_output=True, text=True, check=False
    )
    assert lint.stdout == ""


def renderer_of(folder: Path, text: str) -> Renderer:
    (folder / "a.sh.j2").write_text(text)
    return Renderer(folder)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("one\ntwo {{ name | q }}\n", "cannot render a.sh.j2:2: 'name' is undefined"),
        ("{{ given.name | q }}\n", "a.sh.j2:1: 'dict object' has no attribute 'name'"),
        ("one\n{% if %}\n", "cannot read template a.sh.j2:2"),
        ("\n\n{{ secret | q }}", "cannot render a.sh.j2:3: cannot put a secret"),
        ("{{ words | argv }}", "cannot put a secret"),
        ("{{ wrong | env }}", "cannot export 'a b'"),
        ("{{ given | q }}", "as one word"),
    ],
)
def test_a_template_that_cannot_be_rendered_names_line_and_value(
    text: str, says: str, tmp_path: Path
) -> None:
    given = {"given": {}, "secret": Secret("x"), "words": ["--key", Secret("x")],
             "wrong": {"a b": "c"}}  # fmt: skip
    with pytest.raises(TemplateError, match=re.escape(says)):
        renderer_of(tmp_path, text).text("a.sh.j2", given)


def test_a_missing_template_names_those_that_there_are(tmp_path: Path) -> None:
    with pytest.raises(TemplateError, match=r"cannot find template 'b\.sh\.j2'") as caught:
        renderer_of(tmp_path, "x").text("b.sh.j2", {})
    assert "a.sh.j2" in caught.value.remedy


def test_a_folder_without_templates_tells_where_to_run(tmp_path: Path) -> None:
    with pytest.raises(TemplateError) as caught:
        Renderer(tmp_path).text("a.sh.j2", {})
    assert caught.value.remedy == "run it in the folder that holds templates/"


def test_exports_are_quoted_one_a_line(tmp_path: Path) -> None:
    text = renderer_of(tmp_path, "{{ env | env }}\n").text(
        "a.sh.j2", {"env": {"A": "b c", "D": "e"}}
    )
    assert text == "export A='b c'\nexport D=e\n"


@pytest.mark.parametrize(
    ("value", "written"),
    [("/opt/a", "/opt/a"), ("100%", "100%%"), ('a "b"', '"a \\"b\\""'), ("a\nb", "a b")],
)
def test_a_unit_keeps_its_words(value: str, written: str) -> None:
    assert unit(value) == written
