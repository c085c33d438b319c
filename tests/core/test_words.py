"""Words: quoted on the wire, masked before people."""

from __future__ import annotations

import subprocess

from hypothesis import given
from hypothesis import strategies as st

from bringup.core.document import dump, plain
from bringup.core.words import HostPath, Secret, command, shown


@given(st.lists(st.text(st.characters(blacklist_characters="\0", codec="utf-8")), max_size=5))
def test_a_shell_reads_back_the_very_words(words: list[str]) -> None:
    text = command(["printf", "%s\\0", *words])
    done = subprocess.run(["sh", "-c", text], capture_output=True, check=True)
    expected = words or [""]
    assert done.stdout.decode().split("\0")[:-1] == expected


def test_a_host_path_gains_the_root_and_stays_one_word() -> None:
    text = command([HostPath("/opt/a b/$HOME")])
    done = subprocess.run(["sh", "-c", f"R=/r; printf %s {text}"], capture_output=True, check=True)
    assert done.stdout == b"/r/opt/a b/$HOME"


def test_a_secret_is_whole_on_the_wire_and_masked_everywhere_else() -> None:
    token = Secret("hunter2")
    assert "hunter2" in command(["login", token])
    for text in (shown(["login", token]), repr(token), str(token), f"{token}", dump({"t": token})):
        assert "hunter2" not in text
    assert plain(token) == "***"
