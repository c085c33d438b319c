"""Imports are followed without running anything: which name leads nowhere?"""

from __future__ import annotations

from pathlib import Path

import pytest

from bringup.edge.inside.walk import Walk

WORKER = {
    "worker_x/__init__.py": "from worker_x.main import run\n",
    "worker_x/main.py": """
import os
import engine_x.parser
from engine_x import parser, settings
from engine_x.parser import Parser
from . import helper
from .helper import help_me

try:
    import accelerator_x
except ImportError:
    accelerator_x = None


def run():
    import not_here_either
""",
    "worker_x/helper.py": "def help_me(): ...\n",
    "engine_x/__init__.py": "",
    "engine_x/parser.py": "class Parser: ...\n",
    "engine_x/settings.py": "import torch_x\n",
}


def faults(
    root: Path, patch: pytest.MonkeyPatch, changed: dict[str, str | None], *allow: str
) -> list[str]:
    """Write the packages, some files changed or (None) left out, and follow the imports."""
    for name, text in {**WORKER, **changed}.items():
        if text is not None:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
    patch.syspath_prepend(str(root))
    walk = Walk(["worker_x"], list(allow))
    walk.visit("worker_x.main", "the gate")
    return sorted(walk.faults)


def test_imports_that_fit_have_no_faults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert faults(tmp_path, monkeypatch, {}) == []


def test_module_that_moved_away_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As SGLang 0.5.19 did to Dynamo 1.3.0: server_args_config_parser moved."""
    said = faults(tmp_path, monkeypatch, {"engine_x/parser.py": None})
    assert said[0] == "worker_x.main imports engine_x.parser, which is not there"


def test_name_that_is_gone_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = faults(tmp_path, monkeypatch, {"engine_x/parser.py": "class Other: ...\n"})
    assert said == ["worker_x.main imports Parser from engine_x.parser, which has none"]


def test_lazy_names_are_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lazy = "def __getattr__(name): ...\n"
    assert faults(tmp_path, monkeypatch, {"engine_x/parser.py": lazy}) == []


def test_allowed_module_is_not_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = faults(tmp_path, monkeypatch, {"engine_x/parser.py": None}, "engine_x.parser")
    assert said == []
