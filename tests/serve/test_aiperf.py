"""AIPerf as a second reader: its words, its export, its troubles.

data/aiperf-0.13.0.json is what the real one wrote about the real frontend and a worker of 20 ms a
token; the list of flags is that of its help.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bringup.core.errors import UsageError
from bringup.edge import aiperf as program
from bringup.serve.aiperf import EXPORT, parse, words
from bringup.serve.load import LOADS

DATA = Path(__file__).parent / "data"
SMOKE = LOADS["smoke"]

STANDIN = """\
#!/bin/sh
echo "$@" >{folder}/words
printenv | grep OFFLINE >{folder}/offline
while [ $# -gt 1 ]; do shift; done
{does}
"""


def export(**more: Any) -> str:
    return json.dumps({**json.loads((DATA / "aiperf-0.13.0.json").read_text()), **more})


def standin(folder: Path, does: str) -> str:
    path = folder / "aiperf"
    path.write_text(STANDIN.format(folder=folder, does=does))
    path.chmod(0o755)
    return str(path)


def run(name: str) -> Any:
    return program.run(name, SMOKE, url="http://127.0.0.1:9", model="toy", tokenizer="/models/toy")


def test_its_export_tells_every_gap_and_the_mean_of_each_request() -> None:
    found = parse(export())
    assert (found.version, found.requests, found.error) == ("0.13.0", 12, "")
    assert found.gap_p95_ms == pytest.approx(21.1, abs=0.1)
    assert found.gap_most_ms == pytest.approx(266.3, abs=0.1)
    assert found.mean_gap_p99_ms == pytest.approx(28.1, abs=0.1)


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"request_error_rate": {"unit": "%", "avg": 25.0},
          "error_summary": [{"error_details": {"code": 500}}]}, "25 % of its requests failed"),
        ({"total_output_tokens": {"unit": "tokens", "avg": 0}}, "not one token came"),
    ],
)  # fmt: skip
def test_failed_requests_and_a_run_without_tokens_are_no_result(
    more: dict[str, Any], error: str
) -> None:
    assert error in parse(export(**more)).error


@pytest.mark.parametrize("text", ["", "{}", "[1]"])
def test_another_file_is_no_export(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse(text)


def test_every_flag_is_one_that_it_has() -> None:
    known = set((DATA / "aiperf-0.13.0-flags.txt").read_text().split())
    given = words("aiperf", SMOKE, url="u", model="m", tokenizer="t", folder="f")
    assert {word for word in given if word.startswith("--")} <= known


def test_it_runs_without_the_hubs_offline_mode_which_hides_a_tokenizers_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    found = run(standin(tmp_path, f'cp {DATA}/aiperf-0.13.0.json "$1/{EXPORT}"'))
    assert (found.error, found.requests) == ("", 12)
    assert (tmp_path / "offline").read_text() == ""
    assert "--tokenizer /models/toy" in (tmp_path / "words").read_text()


@pytest.mark.parametrize(
    ("does", "error"),
    [
        ("echo '│ Reason: no such tokenizer │'; exit 1", "exit code 1: Reason: no such tokenizer"),
        ("exit 0", "cannot read its export"),
        ('mkdir -p "$1/logs"; echo "x ERROR deaf" >"$1/logs/aiperf.log"; exit 3', "ERROR deaf"),
    ],
)
def test_its_trouble_is_told_and_ends_nothing(tmp_path: Path, does: str, error: str) -> None:
    assert error in run(standin(tmp_path, does)).error


def test_without_it_the_command_that_installs_it_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        program.find(str(tmp_path / "aiperf"))
    assert "pip install 'aiperf>=0.13,<0.14'" in caught.value.remedy
