"""Fixtures that every room of tests may use."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).parent.parent

Golden = Callable[[str, str], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write golden files anew; review the difference before you commit it",
    )


TERMINAL = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE")
"""Settings of whoever runs the tests that change how what verbs say is laid out."""


settings.register_profile(
    "steady", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.register_profile("search", settings.get_profile("steady"), derandomize=False)
settings.load_profile("steady")
"""Made-up data are the same in each run, and nothing is held to a time: a busy machine has none.
`pytest --hypothesis-profile=search` looks for what nobody thought of."""


def pytest_configure() -> None:
    for name in TERMINAL:
        os.environ.pop(name, None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out, with the reason, what only root can run."""
    if os.geteuid() == 0:
        return
    for item in items:
        if "root" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="needs root: namespaces, mounts, an engine"))


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Compare text with `golden/NAME` beside the test, or write it under --update-golden."""
    folder = request.path.parent / "golden"

    def compare(name: str, text: str) -> None:
        path = folder / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        assert path.exists(), f"{path} is missing: run pytest --update-golden and review it"
        assert text == path.read_text()

    return compare


@pytest.fixture(autouse=True)
def _environment_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep an operator's own settings out of tests."""
    for name in [name for name in os.environ if name.startswith("BRINGUP_")]:
        if not name.startswith("BRINGUP_TEST_"):
            monkeypatch.delenv(name)
