"""The documentation names what there is: verbs, exit codes, files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bringup.core.errors import Exit
from bringup.verbs import collect

ROOT = Path(__file__).parent.parent
PAGES = {path.name: path.read_text() for path in (*ROOT.glob("docs/*.md"), ROOT / "README.md")}
EVERYTHING = "\n".join(PAGES.values())


@pytest.mark.parametrize("name", [verb.name for verb in collect()])
def test_every_verb_is_in_the_documentation(name: str) -> None:
    assert re.search(rf"(?<![\w.]){re.escape(name)}(?![\w.]*\.\w)", EVERYTHING), name


def test_every_exit_code_is_documented() -> None:
    table = PAGES["operate.md"]
    assert all(re.search(rf"^\| {int(code)} \|", table, re.MULTILINE) for code in Exit)


@pytest.mark.parametrize("page", PAGES)
def test_links_between_pages_lead_somewhere(page: str) -> None:
    folder = ROOT if page == "README.md" else ROOT / "docs"
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", PAGES[page]):
        assert (folder / target).exists(), f"{page}: {target}"


def test_the_readme_shows_the_two_commands_first() -> None:
    first_screen = PAGES["README.md"].splitlines()[:25]
    assert any(line.startswith("./run demo") for line in first_screen)
    assert any(line.startswith("./run test") for line in first_screen)
