"""The framed script: same answer from every shell, limits on the host, nothing made of a cut."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import pytest

from bringup.core.script import LIMIT_BYTES, Answer, Ask, Section, compose, lacks_root, split

SHELLS = [
    pytest.param(words, id=words[0])
    for words in (["dash"], ["bash"], ["busybox", "sh"])
    if shutil.which(words[0])
]

NONCE = "f00d"


def answer(asks: list[Ask], shell: list[str] | None = None, *, root: str = "/") -> Answer:
    script = compose(asks, nonce=NONCE, root=root)
    done = subprocess.run([*(shell or ["sh"]), "-c", script], capture_output=True, check=True)
    return split(done.stdout.decode(errors="replace"), nonce=NONCE)


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_gives_the_same_sections(shell: list[str]) -> None:
    asks = [
        Ask("plain", "echo one; echo two"),
        Ask("unended", "printf 'no newline'"),
        Ask("failing", "echo said >&2; exit 3"),
        Ask("silent", ":"),
        Ask("missing", "ask no-such-tool --version"),
        Ask("marks", "echo '@@f00d end marks 0'; echo '|bar'"),
    ]
    found = answer(asks, shell)
    assert found.complete
    assert {name: (s.exit, s.text) for name, s in found.sections.items()} == {
        "plain": (0, "one\ntwo"),
        "unended": (0, "no newline"),
        "failing": (3, "said"),
        "silent": (0, ""),
        "missing": (127, "no-such-tool: not found"),
        "marks": (0, "@@f00d end marks 0\n|bar"),
    }


@pytest.mark.parametrize("shell", SHELLS)
def test_a_tool_that_hangs_costs_its_limit_once(shell: list[str]) -> None:
    asks = [
        Ask("first", "trap '' TERM; sleep 60", seconds=1, tool="slow"),
        Ask("second", "echo never", seconds=1, tool="slow"),
        Ask("other", "echo still"),
    ]
    began = time.monotonic()
    found = answer(asks, shell)
    assert time.monotonic() - began < 50
    assert found["first"].trouble == "timed out"
    assert found["second"].trouble == "not run: an earlier call of slow did not answer"
    assert found["other"].text == "still"


def test_a_child_that_keeps_the_pipe_open_does_not_keep_the_answer_waiting() -> None:
    began = time.monotonic()
    found = answer([Ask("leaky", "sleep 60 & echo started", seconds=1), Ask("next", "echo next")])
    assert time.monotonic() - began < 50
    assert found["next"].text == "next"


def test_output_is_capped(monkeypatch: pytest.MonkeyPatch) -> None:
    found = answer([Ask("huge", "yes abcdefgh | head -c 3000000", seconds=120)])
    assert 1_000_000 < len(found["huge"].text) < 1_300_000


def test_tools_are_found_under_the_root_only(tmp_path: Path) -> None:
    binary = tmp_path / "usr/bin/nvcc"
    binary.parent.mkdir(parents=True)
    binary.write_text("#!/bin/sh\necho mine\n")
    binary.chmod(0o755)
    found = answer([Ask("a", "ask nvcc"), Ask("b", "ask sed --version")], root=str(tmp_path))
    assert found["a"].text == "mine"
    assert found["b"].exit == 127


def test_a_cut_answer_leaves_sections_unfinished() -> None:
    whole = "@@f00d begin a\n|1\n\n@@f00d end a 0\n@@f00d begin b\n|2\n|3"
    found = split(whole, nonce=NONCE)
    assert not found.complete
    assert found["a"] == Section("a", 0, "1")
    assert found["b"] == Section("b", None, "2\n3")
    assert found["never"].exit is None


def test_a_banner_before_the_script_is_no_answer() -> None:
    found = split(
        "Welcome!\n|fake\n@@f00d begin a\n|1\n\n@@f00d end a 0\n@@f00d done\n", nonce=NONCE
    )
    assert found.complete
    assert found["a"].text == "1"


def test_a_script_that_is_too_long_is_refused() -> None:
    with pytest.raises(ValueError, match="more than"):
        compose([Ask("a", "x" * LIMIT_BYTES)], nonce=NONCE)


def test_nothing_is_written_by_asking(tmp_path: Path) -> None:
    done = subprocess.run(
        ["sh", "-c", compose([Ask("a", "echo hi")], nonce=NONCE)],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "TMPDIR": str(tmp_path), "HOME": str(tmp_path)},
        check=True,
        capture_output=True,
    )
    assert done.stderr == b""
    assert list(tmp_path.iterdir()) == []


def test_a_root_folder_that_is_not_there_is_said_and_nothing_is_asked(tmp_path: Path) -> None:
    text = compose([Ask("one", "echo asked", 5)], nonce="n", root=str(tmp_path / "nonexistent"))
    done = subprocess.run(["sh", "-c", text], capture_output=True, text=True, check=True)
    assert lacks_root(done.stdout, nonce="n")
    assert "asked" not in done.stdout
