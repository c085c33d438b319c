"""The practice server against real clients."""

from __future__ import annotations

import hashlib
import os

from bringup.lab import fleet

from .conftest import Ssh


def test_a_host_answers_as_itself(ssh: Ssh) -> None:
    done = ssh("b300-04", "nvidia-smi -L | wc -l; cat $HOME/../../etc/hostname; exit 3")
    assert (done.returncode, done.stdout) == (3, b"8\nb300-04\n")


def test_streams_are_binary_clean_both_ways(ssh: Ssh) -> None:
    sent = os.urandom(3_000_000) + b"\x00\xff\r\n"
    done = ssh("b200-01", "cat; printf '\\377\\000' >&2", input=sent)
    assert hashlib.sha256(done.stdout).digest() == hashlib.sha256(sent).digest()
    assert done.stderr == b"\xff\x00"


def test_a_second_up_keeps_the_server(lab: fleet.LabStatus) -> None:
    assert fleet.up(lab.folder) == lab
