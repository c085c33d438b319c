"""What ib_write_bw says of one rail, read; answers as its users report them."""

from __future__ import annotations

import pytest

from bringup.core.reading import Absent, Known, Unknown
from bringup.core.rules import Level, Status
from bringup.core.script import Section
from bringup.probes.hca import Hca, InfiniBand, Purpose
from bringup.probes.rail import Rail, Written, rails_between, read_rail
from bringup.rules.rails import RailWorld, judge_rails

HEAD = """\
---------------------------------------------------------------------------------------
                    RDMA_Write BW Test
 Dual-port       : OFF\t\tDevice         : mlx5_0
 Number of qps   : 1\t\tTransport type : IB
 Link type       : IB
---------------------------------------------------------------------------------------
 local address: LID 0x02 QPN 0x0032 PSN 0x5f2841 RKey 0x002440 VAddr 0x007f2e5f64b000
 remote address: LID 0x01 QPN 0x003a PSN 0xc0fd7e RKey 0x002442 VAddr 0x007f443b2f8000
---------------------------------------------------------------------------------------
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
"""
ROW = " 65536      2244110          0.00               {}              0.748010\n"
NOTHING = Section("server", 0, "")


def port(name: str, state: str = "ACTIVE", rate: float | None = 400.0) -> Hca:
    return Hca(name, Purpose.COMPUTE, state, rate_gb_s=rate)


def test_bandwidth_is_the_average_not_the_peak() -> None:
    said = Section("client", 0, HEAD + ROW.format("392.17"))
    row = "65536 2244110 0.00 392.17 0.748010"
    assert read_rail(said, NOTHING) == Known(Written(392.17), row)


@pytest.mark.parametrize(
    ("client", "server", "why"),
    [
        (
            Section("client", 1, HEAD + " Completion with error at client\n"
                    " Failed status 12: wr_id 0 syndrom 0x81\nscnt=128, ccnt=0\n"),
            NOTHING,
            "Completion with error at client; Failed status 12: wr_id 0 syndrom 0x81",
        ),
        (
            Section("client", 1, "Couldn't read remote address\n"),
            Section("server", 1, "Unable to find the Infiniband/RoCE device\n"),
            "Unable to find the Infiniband/RoCE device",
        ),
        (
            Section("client", 124, HEAD),
            Section("server", 124, HEAD),
            "connected, but no data moved within 10 s",
        ),
    ],
    ids=["no answer over the rail", "the other side has no such device", "a rail that hangs"],
)  # fmt: skip
def test_rail_that_moves_no_data_is_broken(client: Section, server: Section, why: str) -> None:
    reading = read_rail(client, server)
    assert isinstance(reading, Known)
    assert reading.value == Written(None, why)


@pytest.mark.parametrize(
    ("client", "why"),
    [
        (Section("client", 1, "Couldn't connect to 198.18.35.7:18515\n"
                 "Unable to open file descriptor for socket connection"
                 " Unable to init the socket connection\n"), "did not meet over TCP"),
        (Section("client", None, ""), "cut off"),
        (Section("client", 0, HEAD), "exit 0"),
        (Section("client", 0, HEAD + ROW.format("nan")), "exit 0"),
    ],
    ids=["closed port", "lost line", "no row", "no number"],
)  # fmt: skip
def test_test_that_did_not_take_place_is_unknown(client: Section, why: str) -> None:
    reading = read_rail(client, Section("server", 124, ""))
    assert isinstance(reading, Unknown)
    assert why in reading.why


@pytest.mark.parametrize("side", ["client", "server"])
def test_missing_tool_is_absent_on_the_side_that_lacks_it(side: str) -> None:
    lacking = Section(side, 127, "ib_write_bw: not found\n")
    other = Section("server" if side == "client" else "client", 124, "")
    pair = (lacking, other) if side == "client" else (other, lacking)
    reading = read_rail(*pair)
    assert isinstance(reading, Absent)
    word = "writes" if side == "client" else "is written to"
    assert reading.evidence == f"ib_write_bw: not found on the host that {word}"


@pytest.mark.parametrize(
    ("gb_s", "rate", "status", "level"),
    [
        (392.0, 400.0, Status.PASS, Level.OK),
        (360.0, 400.0, Status.PASS, Level.OK),
        (359.0, 400.0, Status.WARN, Level.WARN),
        (299.0, 400.0, Status.FAIL, Level.BLOCK),
        (None, 400.0, Status.FAIL, Level.BLOCK),
        (392.0, None, Status.UNKNOWN, Level.NOTE),
    ],
)
def test_rail_is_judged_by_the_rate_of_its_ports(
    gb_s: float | None, rate: float | None, status: Status, level: Level
) -> None:
    rail = Rail(port("mlx5_4", rate=rate), port("mlx5_4", rate=rate))
    world = RailWorld(rail, Known(Written(gb_s, "" if gb_s else "Failed status 12")))
    (finding,) = judge_rails((world,), host="b300-04")
    assert (finding.id, finding.status, finding.level) == ("IB-15", status, level)


def test_the_slower_port_sets_what_a_rail_promises() -> None:
    assert Rail(port("mlx5_0", rate=800.0), port("mlx5_0", rate=400.0)).rate_gb_s == 400.0


def test_devices_meet_their_namesakes_and_only_where_both_are_active() -> None:
    mine = InfiniBand((port("mlx5_4"), port("mlx5_7"), port("mlx5_8", "DOWN")))
    theirs = InfiniBand((port("mlx5_7"), port("mlx5_4"), port("mlx5_8")))
    rails = rails_between(mine, theirs)
    assert [str(rail) for rail in rails] == ["mlx5_4", "mlx5_7"]


def test_devices_without_a_namesake_meet_in_order() -> None:
    mine = InfiniBand((port("mlx5_0"), port("mlx5_1"), port("mlx5_2")))
    theirs = InfiniBand((port("mlx5_1"), port("rocep1s0"), port("rocep2s0")))
    rails = rails_between(mine, theirs)
    assert [str(rail) for rail in rails] == ["mlx5_1", "mlx5_0 to rocep1s0", "mlx5_2 to rocep2s0"]
