"""Rails between two practice hosts, measured through a stand-in for perftest that meets over TCP.

No RDMA device is to be had where tests run: the tool is a stand-in that listens and connects as
the real one does and speaks its words; everything around it is real.
"""

from __future__ import annotations

import json

import pytest

from .conftest import Lab

pytestmark = pytest.mark.xdist_group("lab")

PAIR = ("--from", "b300-04", "--to", "b300-07")

TOOL = """#!/usr/bin/env python3
import argparse, socket, sys
parser = argparse.ArgumentParser()
for flag in ("-d", "-i", "-D", "-p"):
    parser.add_argument(flag)
for flag in ("--report_gbits", "-F"):
    parser.add_argument(flag, action="store_true", required=True)
parser.add_argument("server", nargs="?")
told = parser.parse_args()
rates = RATES
if told.server is None:
    listener = socket.create_server(("127.0.0.1", int(told.p)))
    listener.settimeout(240)
    peer, _ = listener.accept()
    peer.sendall(told.d.encode())
    sys.exit(0)
try:
    peer = socket.create_connection(("127.0.0.1", int(told.p)), timeout=60)
except OSError:
    print(f"Couldn't connect to {told.server}:{told.p}")
    sys.exit("Unable to open file descriptor for socket connection")
if peer.recv(64).decode() != told.d:
    sys.exit("the server serves another device")
rate = rates.get(told.d, 792.0)
print(" local address: LID 0x02 QPN 0x0032")
print(" remote address: LID 0x01 QPN 0x003a")
if rate is None:
    print(" Completion with error at client")
    sys.exit(" Failed status 12: wr_id 0 syndrom 0x81")
print(" #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]")
print(f" 65536      2244110          0.00               {rate}              0.748010")
"""


def give(lab: Lab, host: str, rates: dict[str, float | None] | None = None) -> None:
    tool = lab.root(host) / "usr/bin/ib_write_bw"
    tool.parent.mkdir(parents=True, exist_ok=True)
    tool.write_text(TOOL.replace("RATES", repr(rates or {})))
    tool.chmod(0o755)


def rails(stdout: str) -> dict[str, str]:
    told = next(one for line in stdout.splitlines() if (one := json.loads(line)).get("rails"))
    return {rail["device"]: rail["finding"]["status"] for rail in told["rails"]}


def test_all_rails_of_a_pair_are_measured_one_after_the_other(lab: Lab) -> None:
    give(lab, "b300-04")
    give(lab, "b300-07")
    done = lab.run("probe.pair", *PAIR, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    found = rails(done.stdout)
    assert set(found.values()) == {"pass"}
    assert len(found) == 8
    assert "mlx5_0" not in found, "a bridge of the NVSwitches carries nothing"


def test_a_slow_and_a_dead_rail_are_named_with_what_to_do(lab: Lab) -> None:
    give(lab, "b300-04", {"mlx5_7": 140.0, "mlx5_9": None})
    give(lab, "b300-07")
    done = lab.run("probe.pair", *PAIR)
    assert done.returncode == 4
    assert "mlx5_7: 140 of" in done.stdout
    assert "mlx5_9: Completion with error at client; Failed status 12" in done.stdout
    assert "8 rails, 6 as they should be" in done.stdout
    assert "compare the rail map of both hosts" in done.stdout


def test_a_host_without_perftest_is_named_at_the_first_rail(lab: Lab) -> None:
    give(lab, "b300-04")
    (lab.root("b300-07") / "usr/bin/ib_write_bw").unlink(missing_ok=True)
    done = lab.run("probe.pair", *PAIR)
    assert done.returncode == 4
    assert "ib_write_bw: not found on the host that is written to" in done.stderr
    assert "install perftest" in done.stderr


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--from", "b300-04"), "cannot test a pair of b300-04 and nobody"),
        (("--from", "b300-04", "--to", "b300-04"), "it has two hosts"),
        (("--from", "b300-04", "--to", "b200-01"), "cannot test b200-01: its RDMA devices are"),
    ],
    ids=["one host", "the same host", "a host without RDMA"],
)
def test_what_is_no_pair_is_refused(lab: Lab, words: tuple[str, ...], why: str) -> None:
    done = lab.run("probe.pair", *words)
    assert done.returncode in (2, 4)
    assert why in done.stderr
