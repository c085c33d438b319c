"""A worker of several hosts: rank 0 speaks for it, the others are watched for their lives."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bringup.core.reading import Known
from bringup.readiness.cards import Announced
from bringup.readiness.doing import doing
from bringup.readiness.stages import Run, Stage, WorkerLook
from bringup.readiness.verdict import Ready, Waiting, judge
from bringup.readiness.watch import State

from .test_verdict import CHAT, DECODE, GOOD, PREFILL, TERMS, UP, card, instance, loads, over, seen
from .test_verdict import start as begin

LEADER = replace(DECODE, timeout_s=60)
RANK = replace(LEADER, host="b300-08", addresses=("10.0.0.8",), registers=False,
               follows=LEADER.key)  # fmt: skip
FAILS = "RuntimeError: Could not find nvcc and default cuda_home='/usr/local/cuda' doesn't exist"
ALL = Announced((card("prefill"), card("decode")), (instance("prefill"), instance("decode")))


def start() -> State:
    return begin(PREFILL, LEADER, RANK)


def test_a_rank_that_never_registers_does_not_hold_its_worker_up() -> None:
    state = seen(
        start(), 10, announced=Known(ALL), listed=Known(("k3",)), chat=CHAT, proof=Known("both")
    )
    assert judge(state, TERMS) == Ready("both")
    assert doing(state.workers[RANK.key]) == "serves with rank 0"


def test_a_card_at_the_address_of_a_rank_is_not_its_leaders() -> None:
    cards = (card("prefill"), card("decode"))
    places = (instance("prefill"), instance("decode", "10.0.0.8"))
    state = seen(start(), 10, announced=Known(Announced(cards, places)))
    assert state.workers[LEADER.key].stage is Stage.ENGINE


def test_a_rank_loads_as_long_as_its_leader_does() -> None:
    state = seen(start(), 10, {RANK.key: loads(10, "Load weight begin")})
    watched = state.workers[RANK.key]
    assert (watched.stage, str(watched.progress)) == (Stage.ENGINE, "weights")
    assert judge(state, TERMS) == Waiting(Stage.ENGINE)


@pytest.mark.parametrize(
    ("run", "why"),
    [
        (Run("exited", exit=1), "it ended with exit code 1"),
        (Run("gone"), "its container is gone"),
    ],
)
def test_a_rank_that_ends_ends_the_wait_with_its_own_log(run: Run, why: str) -> None:
    state = seen(start(), 5, {RANK.key: loads(5, FAILS)})
    state = seen(state, 6, {RANK.key: WorkerLook(Known(run), GOOD)})
    verdict = over(judge(state, TERMS))
    assert (verdict.who, verdict.why) == (RANK.key, why)
    assert verdict.matches[0].failure.id == "flashinfer-no-nvcc"


def test_a_cause_in_the_log_of_a_rank_ends_the_wait_at_once() -> None:
    verdict = over(judge(seen(start(), 5, {RANK.key: loads(5, FAILS)}), TERMS))
    assert verdict.who == RANK.key


def test_a_leader_that_is_late_is_told_with_what_its_rank_says() -> None:
    line = "NCCL INFO NET/Socket : Using [0]eth0:10.0.0.8<0>"
    state = seen(start(), 1, {RANK.key: loads(1, line)})
    quiet = {key: loads(400) for key in (LEADER.key, RANK.key)}
    verdict = over(judge(seen(state, 400, quiet), TERMS))
    assert verdict.who == LEADER.key
    assert [match.evidence for match in verdict.matches] == [line]


def test_a_rank_without_progress_is_not_late_by_itself() -> None:
    state = seen(start(), 1)
    bar = "Loading safetensors checkpoint shards:  50% Completed | 48/96 [00:01<00:01, 2it/s]"
    state = seen(state, 300, {LEADER.key: loads(300, bar), RANK.key: loads(300)})
    assert isinstance(judge(state, TERMS), Waiting)


def test_a_plain_engine_of_several_hosts_is_up_when_its_rank_0_answers() -> None:
    leader = replace(LEADER, registers=False, url="http://127.0.0.1:30000/health")
    state = begin(leader, replace(RANK, follows=leader.key))
    up = WorkerLook(UP, GOOD, up=Known(True))
    state = seen(state, 5, {leader.key: up})
    assert {watched.stage for watched in state.workers.values()} == {Stage.LISTED}
