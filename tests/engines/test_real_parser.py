"""The real parser of dynamo.frontend takes what is rendered, and its help is what is shipped.

docs/extend-engine.md records the same for SGLang's parser and vLLM's router, which are too large to
install here.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from bringup.engines.schema import hold
from bringup.engines.schema_make import from_help

from .test_front import HERE, standing

pytestmark = pytest.mark.slow

PARSE = """
import sys
from dynamo.frontend.main import parse_args
sys.argv = ["dynamo.frontend", *sys.argv[1:]]
print("port", parse_args()[0].http_port)
"""


def parsed(python: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}
    return subprocess.run(
        [python, "-c", PARSE, *words], env=env, capture_output=True, text=True, check=False,
        timeout=600,
    )  # fmt: skip


def test_the_frontend_takes_the_rendered_words(dynamo_env: Path) -> None:
    spec, _ = standing(HERE, "b300-04")
    done = parsed(dynamo_env, *map(str, spec.command.argv[spec.command.program :]))
    assert done.stdout.splitlines()[-1] == "port 8000", done.stderr


def test_the_frontend_refuses_an_unknown_word(dynamo_env: Path) -> None:
    assert parsed(dynamo_env, "--no-such-flag").returncode != 0


def test_the_shipped_list_is_what_the_frontend_says_of_itself(dynamo_env: Path) -> None:
    words = [str(dynamo_env), "-m", "dynamo.frontend", "--help"]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=600)
    made = from_help(done.stdout, package="dynamo.frontend", version="1.3.0.post1")
    shipped = hold("dynamo.frontend", "1.3.0.post1").exact
    assert shipped is not None
    assert set(made.flags) <= set(shipped.flags)
    hidden = {"--router-kv-overlap-score-weight", "--kv-overlap-score-weight"}  # deprecated aliases
    assert set(shipped.flags) - set(made.flags) == hidden
    for name, flag in made.flags.items():
        assert flag.takes_value == shipped.flags[name].takes_value, name
        assert set(flag.choices) == set(shipped.flags[name].choices), name
