"""The practice server against real clients: OpenSSH's and paramiko."""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import paramiko
import pytest

from bringup.lab import fleet
from bringup.lab.hardware import USER
from tests.needed import require

from .conftest import PATIENCE_S, Ssh, is_alive, until

pytestmark = pytest.mark.xdist_group("lab-server")


@contextmanager
def client(lab: fleet.LabStatus, host: str) -> Iterator[paramiko.SSHClient]:
    (at,) = (each for each in lab.hosts if each.name == host)
    made = paramiko.SSHClient()
    made.load_host_keys(str(lab.folder / "known_hosts"))
    made.connect(
        at.address, at.port, USER, key_filename=str(lab.folder / "keys/operator"),
        allow_agent=False, look_for_keys=False, timeout=PATIENCE_S,
    )  # fmt: skip
    try:
        yield made
    finally:
        made.close()


def test_a_host_answers_as_itself(ssh: Ssh) -> None:
    done = ssh("b300-04", "nvidia-smi -L | wc -l; hostname; uname -r; nproc; exit 3")
    assert done.stdout.split() == [b"8", b"b300-04", b"6.8.0-90-generic", b"256"]
    assert done.returncode == 3


def test_streams_are_binary_clean_both_ways(ssh: Ssh) -> None:
    sent = os.urandom(3_000_000) + b"\x00\xff\r\n"
    done = ssh("b200-01", "cat; printf '\\377\\000' >&2", given=sent)
    assert hashlib.sha256(done.stdout).digest() == hashlib.sha256(sent).digest()
    assert done.stderr == b"\xff\x00"


def test_a_command_without_input_sees_its_end(ssh: Ssh) -> None:
    assert ssh("b200-01", "cat; echo end").stdout == b"end\n"


def test_what_a_host_lacks_is_not_found_on_it(ssh: Ssh) -> None:
    done = ssh("b200-01", "command -v docker nvcc podman ibstat; nvcc --version")
    assert (done.returncode, done.stdout) == (127, b"")


def test_the_environment_is_the_hosts_own(ssh: Ssh) -> None:
    said = ssh("b200-01", 'pwd; echo "$USER"; env | grep -c -e PYTHON -e PYTEST').stdout.split()
    assert said[0].endswith(b"/hosts/b200-01/root/home/operator")
    assert said[1:] == [b"operator", b"0"]


def test_a_command_killed_by_a_signal_is_told_as_such(lab: fleet.LabStatus) -> None:
    with client(lab, "b200-01") as made:
        _, out, _ = made.exec_command("kill -9 $$", timeout=PATIENCE_S)
        assert out.channel.recv_exit_status() == -1


def test_a_lost_client_takes_its_commands_with_it(ssh: Ssh) -> None:
    words = ssh.words("b200-01", "sleep 600 & echo $$ $!; wait")
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        started = [int(word) for word in process.stdout.readline().split()]
        process.kill()
    until(lambda: not any(map(is_alive, started)), "the commands of a lost client end")


def test_a_closed_channel_takes_its_command_with_it(lab: fleet.LabStatus) -> None:
    with client(lab, "b200-01") as made:
        _, out, _ = made.exec_command("trap '' HUP TERM; echo $$; sleep 600; sleep 600")
        process = int(out.readline())
        out.channel.close()
        until(lambda: not is_alive(process), "the command of a closed channel ends")


def test_a_command_left_behind_on_purpose_stays(ssh: Ssh) -> None:
    said = ssh("b200-01", "sleep 600 >/dev/null 2>&1 </dev/null & echo $!").stdout
    process = int(said)
    try:
        assert is_alive(process)
    finally:
        os.kill(process, 9)


def test_a_terminal_is_given_to_who_asks(ssh: Ssh) -> None:
    done = ssh("b200-01", "test -t 0 && test -t 1 && stty size; exit 4", "-tt")
    assert done.stdout.split()[:1] not in ([], [b"stty:"])
    assert done.returncode == 4


@pytest.mark.parametrize(
    "options",
    [("-l", "root"), ("-o", "IdentityFile=/nonexistent")],
    ids=["another user", "another key"],
)
def test_strangers_stay_outside(ssh: Ssh, options: tuple[str, ...]) -> None:
    more = ("-o", "IdentityAgent=none", "-o", "BatchMode=yes", "-F", "none")
    host = ("-p", port_of(ssh, "b200-01"), "-o", "StrictHostKeyChecking=no")
    quiet = ("-o", "UserKnownHostsFile=/dev/null", "-o", "IdentitiesOnly=yes")
    key = ("-i", str(ssh.folder / "keys/operator")) if options[0] == "-l" else ()
    require("ssh")
    words = ["ssh", *more, *host, *quiet, *key, *options, "127.0.0.1", "true"]
    done = subprocess.run(words, check=False, capture_output=True, timeout=PATIENCE_S)
    assert done.returncode == 255
    assert b"Permission denied" in done.stderr


def port_of(ssh: Ssh, host: str) -> str:
    return str(next(each.port for each in fleet.status(ssh.folder).hosts if each.name == host))


def test_a_host_with_another_key_is_not_trusted(ssh: Ssh) -> None:
    known = ssh.folder / "known_hosts_swapped"
    lines = (ssh.folder / "known_hosts").read_text().splitlines()
    names, keys = zip(*(line.split(" ", 1) for line in lines), strict=True)
    known.write_text("".join(f"{n} {k}\n" for n, k in zip(names, reversed(keys), strict=True)))
    done = ssh("b300-04", "true", "-o", f"UserKnownHostsFile={known}")
    assert b"HOST IDENTIFICATION HAS CHANGED" in done.stderr


def test_sixty_four_logins_at_once_all_come_in(lab: fleet.LabStatus) -> None:
    (at,) = (each for each in lab.hosts if each.name == "b200-01")
    banners: list[bytes] = []

    def knock() -> None:
        with socket.create_connection((at.address, at.port), timeout=PATIENCE_S) as made:
            banners.append(made.recv(4))

    threads = [threading.Thread(target=knock) for _ in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert banners == [b"SSH-"] * 64


def test_many_commands_share_one_connection(lab: fleet.LabStatus) -> None:
    with client(lab, "b200-01") as made:
        outs = [made.exec_command(f"echo {number}")[1] for number in range(20)]
        assert [out.read() for out in outs] == [b"%d\n" % number for number in range(20)]


def test_the_log_tells_each_login_and_command(lab: fleet.LabStatus) -> None:
    log = lab.folder / "server.log"
    before = len(log.read_text().splitlines())
    with client(lab, "b300-04") as made:
        made.exec_command("exit 5")[1].channel.recv_exit_status()
    lines = [line.split(" ", 2)[2] for line in log.read_text().splitlines()[before:]]
    assert [line for line in lines if line.startswith("b300-04 login from port ")]
    assert "b300-04 runs 'exit 5' (6 bytes)" in lines
    assert "b300-04 ended with 5" in lines


def test_an_archive_streams_in_and_out(ssh: Ssh, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content\n")
    packed = subprocess.run(
        ["tar", "-C", tmp_path, "-cf", "-", "file"], check=True, capture_output=True
    ).stdout
    done = ssh(
        "b200-01", "mkdir -p arrived && tar -xf - -C arrived && cat arrived/file", given=packed
    )
    assert done.stdout == b"content\n"


@pytest.mark.parametrize("protocol", ["-s", "-O"], ids=["sftp", "scp"])
def test_files_are_copied(ssh: Ssh, tmp_path: Path, protocol: str) -> None:
    require("ssh")
    (tmp_path / "here").write_bytes(os.urandom(200_000))
    config = ["scp", "-q", "-F", str(ssh.folder / "ssh_config"), protocol]
    there = f"b200-01:copied{protocol}"
    for words in ([f"{tmp_path}/here", there], [there, f"{tmp_path}/back"]):
        subprocess.run([*config, *words], check=True, capture_output=True, timeout=PATIENCE_S)
    assert (tmp_path / "back").read_bytes() == (tmp_path / "here").read_bytes()


def test_paramiko_writes_and_renames_files(lab: fleet.LabStatus) -> None:
    with client(lab, "b200-01") as made, made.open_sftp() as files:
        with files.open("staged", "wb") as stream:
            stream.write(b"new")
        files.posix_rename("staged", "final")
        with files.open("final", "rb") as stream:
            assert stream.read() == b"new"


def test_a_port_of_this_machine_is_reached_through_a_host(lab: fleet.LabStatus) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, client(lab, "b200-01") as made:
        transport = made.get_transport()
        assert transport
        place = ("127.0.0.1", server.getsockname()[1])
        with transport.open_channel("direct-tcpip", place, ("127.0.0.1", 0)) as channel:
            met, _ = server.accept()
            with met:
                met.sendall(b"hello")
                assert channel.recv(5) == b"hello"


def test_other_addresses_are_refused_at_once(lab: fleet.LabStatus) -> None:
    with client(lab, "b200-01") as made:
        transport = made.get_transport()
        assert transport
        with pytest.raises(paramiko.ChannelException, match="Connect failed"):
            transport.open_channel("direct-tcpip", ("192.0.2.51", 2379), ("127.0.0.1", 0))


def test_a_port_of_a_host_leads_back_here(ssh: Ssh) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        back = f"127.0.0.1:0:127.0.0.1:{server.getsockname()[1]}"
        words = ssh.words("b200-01", "sleep 60", "-v", "-R", back)
        with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
            try:
                assert process.stderr
                given = next(line for line in process.stderr if "Allocated port" in line)
                port = int(given.split()[2])
                with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S):
                    server.accept()[0].close()
            finally:
                process.kill()
