"""The judgement of states, without a clock or a host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from bringup.core.host import Mode
from bringup.core.reading import Absent, Known, Reading, Unknown
from bringup.edge.catalogue import failures
from bringup.readiness.cards import Announced, Instance, ModelCard
from bringup.readiness.failures import Case, catalogue
from bringup.readiness.shown import state_signs
from bringup.readiness.stages import Chat, Look, Peers, Run, Stage, Worker, WorkerLook
from bringup.readiness.verdict import Over, Ready, Terms, Verdict, Waiting, judge
from bringup.readiness.watch import State, advance, begin

TERMS = Terms(catalogue(failures(), Case("dynamo.sglang")))
PREFILL = Worker("b300-04", "prefill", Mode.PREFILL, "k3-prefill", "/s", "sha256:c",
                 addresses=("10.0.0.4",), timeout_s=3600)  # fmt: skip
DECODE = replace(PREFILL, host="b300-07", role="decode", mode=Mode.DECODE, name="k3-decode",
                 addresses=("10.0.0.7",))  # fmt: skip
UP = Known(Run("running", started="a", age_s=1.0))
GOOD = Known(True)
CHAT = Chat(200, "id", 5, "hello", 1.0, 0.1, {"prefill": 4, "decode": 7})


def card(mode: str, *, name: str = "k3", namespace: str = "dynamo") -> ModelCard:
    number = {"prefill": 4, "decode": 7}[mode]
    return ModelCard("k", namespace, mode, "generate", number, name, "/m", (), mode)


def instance(mode: str, host: str = "", transport: str = "tcp") -> Instance:
    number = {"prefill": 4, "decode": 7}[mode]
    where = host or f"10.0.0.{number}"
    return Instance("k", "dynamo", mode, "generate", number, transport, f"{where}:9000")


BOTH = Announced((card("prefill"), card("decode")), (instance("prefill"), instance("decode")))


def start(*workers: Worker, uses_nats: bool = False) -> State:
    return begin(
        workers or (PREFILL, DECODE), name="k3", namespace="dynamo", now=0.0, uses_etcd=True,
        uses_nats=uses_nats,
    )  # fmt: skip


def seen(
    state: State, at: float, each: Mapping[str, WorkerLook] | None = None, **more: object
) -> State:
    """Advance by one look; what is not said is as when all is well."""
    workers = {key: WorkerLook(run=UP, etcd=GOOD) for key in state.workers} | dict(each or {})
    look = Look(at=at, workers=workers, **{"announced": Known(Announced((), ())), **more})  # type: ignore[arg-type]
    return advance(state, look, TERMS.known)


def loads(at: float, *lines: str, age: float | None = None) -> WorkerLook:
    return WorkerLook(Known(Run("running", started="a", age_s=at if age is None else age)), GOOD,
                      lines=lines)  # fmt: skip


def over(verdict: Verdict) -> Over:
    assert isinstance(verdict, Over), verdict
    return verdict


def test_a_pair_is_ready_once_both_sides_are_proven() -> None:
    state = seen(start(), 10, announced=Known(BOTH), listed=Known(("k3",)), chat=CHAT)
    assert judge(state, TERMS) == Waiting(Stage.PAIRED)
    state = seen(
        state, 11, announced=Known(BOTH), listed=Known(("k3",)), chat=CHAT, proof=Known("both")
    )
    assert judge(state, TERMS) == Ready("both")


def test_each_stage_is_waited_for_in_turn() -> None:
    state = seen(start(uses_nats=True), 1, {
        PREFILL.key: WorkerLook(run=UP, etcd=Known(False, "etcd: refused"), nats=GOOD),
        DECODE.key: WorkerLook(run=UP, etcd=GOOD, nats=Known(False, "NATS: refused")),
    })  # fmt: skip
    assert {k: w.stage for k, w in state.workers.items()} == {
        PREFILL.key: Stage.ETCD, DECODE.key: Stage.NATS,
    }  # fmt: skip
    state = seen(state, 2, {PREFILL.key: WorkerLook(Known(Run("gone")), GOOD)})
    assert state.workers[PREFILL.key].stage is Stage.CONTAINER
    assert state.workers[DECODE.key].stage is Stage.ENGINE
    state = seen(
        state, 3, {DECODE.key: loads(3, "Successfully registered LLM with runtime config")}
    )
    assert state.workers[DECODE.key].stage is Stage.REGISTERED
    state = seen(state, 4, announced=Known(BOTH))
    assert state.stage is Stage.LISTED


def test_a_slow_start_with_progress_outlives_its_budget_and_a_silent_one_does_not() -> None:
    bar = "Loading safetensors checkpoint shards:  50% Completed | {}/96 [00:01<00:01, 2it/s]"
    state = start()
    for number, at in ((10, 1000.0), (20, 3500.0)):
        state = seen(state, at, {k: loads(at, bar.format(number)) for k in state.workers})
    state = seen(state, 3700, {k: loads(3700) for k in state.workers})
    assert isinstance(judge(state, TERMS), Waiting)
    state = seen(state, 3900, {k: loads(3900) for k in state.workers})
    why = over(judge(state, TERMS)).why
    assert "it may take 3600 s" in why
    assert "no progress for 400 s" in why


def test_age_counts_from_the_worker_not_from_the_wait() -> None:
    state = seen(start(), 10, {PREFILL.key: loads(10, age=3700), DECODE.key: loads(10, age=5)})
    assert over(judge(state, TERMS)).who == PREFILL.key


def test_a_certain_cause_in_a_log_ends_the_wait_at_once() -> None:
    line = "RuntimeError: Could not find nvcc and default cuda_home='/usr/local/cuda' doesn't exist"
    state = seen(start(), 3, {DECODE.key: loads(3, "fine", line, "more")})
    verdict = over(judge(state, TERMS))
    assert (verdict.who, verdict.matches[0].failure.id) == (DECODE.key, "flashinfer-no-nvcc")


def test_a_line_that_only_may_mean_trouble_does_not_end_the_wait() -> None:
    state = seen(start(), 3, {DECODE.key: loads(3, "NCCL INFO NET/Socket : Using [0]eth0")})
    assert isinstance(judge(state, TERMS), Waiting)


def test_a_registered_worker_is_not_judged_by_old_lines() -> None:
    line = "RuntimeError: Could not find nvcc and default cuda_home='/usr/local/cuda' doesn't exist"
    state = seen(start(), 3, {DECODE.key: loads(3, line)}, announced=Known(BOTH))
    assert isinstance(judge(state, TERMS), Waiting)


@pytest.mark.parametrize(
    ("run", "cause"),
    [
        (Run("exited", exit=137, oom=True), "container-out-of-memory"),
        (Run("exited", exit=137), "killed-from-outside"),
        (Run("exited", exit=143), "stopped-by-request"),
        (Run("exited", exit=139), "segfault"),
        (Run("exited", exit=2), "usage-exit"),
    ],
)
def test_a_container_that_ended_is_over_and_its_exit_is_named(run: Run, cause: str) -> None:
    state = seen(start(), 3, {DECODE.key: WorkerLook(Known(run), GOOD)})
    verdict = over(judge(state, TERMS))
    assert verdict.why.startswith("it ended with exit code")
    assert [m.failure.id for m in verdict.matches] == [cause]


def test_a_container_that_is_restarted_is_waited_for_until_it_loops() -> None:
    policy = replace(DECODE, restarts=True)
    state = start(PREFILL, policy)
    state = seen(state, 1, {DECODE.key: WorkerLook(Known(Run("restarting", 1, count=1)), GOOD)})
    assert isinstance(judge(state, TERMS), Waiting)
    state = seen(state, 9, {DECODE.key: WorkerLook(Known(Run("restarting", 1, count=3)), GOOD)})
    verdict = over(judge(state, TERMS))
    assert verdict.matches[0].failure.id == "restart-loop"


@pytest.mark.parametrize("run", [Run("gone"), Run("exited", exit=143)])
def test_a_frontend_that_is_started_anew_is_waited_for_and_one_that_stays_away_is_not(
    run: Run,
) -> None:
    front = replace(DECODE, host="b300-01", role="frontend", mode=Mode.AGGREGATED, name="front",
                    registers=False, is_front=True, url="http://b300-01:8000/live")  # fmt: skip
    both = {"announced": Known(BOTH)}
    up = {front.key: WorkerLook(run=UP, etcd=GOOD, up=GOOD)}
    away = {front.key: WorkerLook(run=Known(run), etcd=GOOD)}
    state = seen(seen(start(PREFILL, DECODE, front), 10, up, **both), 20, away, **both)
    assert isinstance(judge(state, TERMS), Waiting)
    assert isinstance(judge(seen(state, 25, up, **both), TERMS), Waiting)
    assert over(judge(seen(state, 33, away, **both), TERMS)).who == front.key


def test_a_new_run_has_its_progress_before_it() -> None:
    bar = "Loading safetensors checkpoint shards:  50% Completed | 48/96 [00:01<00:01, 2it/s]"
    state = seen(start(), 5, {DECODE.key: loads(5, bar)})
    anew = WorkerLook(Known(Run("running", started="b", age_s=1)), GOOD)
    state = seen(state, 9, {DECODE.key: anew})
    watched = state.workers[DECODE.key]
    assert (watched.progress.total, watched.restarts, watched.born) == (0, 1, 8)


def test_a_host_that_is_lost_for_a_moment_is_waited_for() -> None:
    lost = WorkerLook(lost="cannot reach b300-07")
    state = seen(start(), 1, {DECODE.key: lost})
    assert isinstance(judge(state, TERMS), Waiting)
    state = seen(state, 60)
    assert state.workers[DECODE.key].lost_since is None
    state = seen(seen(state, 100, {DECODE.key: lost}), 200, {DECODE.key: lost})
    assert over(judge(state, TERMS)).why == "cannot reach b300-07"


def test_a_frontend_that_does_not_answer_has_not_emptied_its_list() -> None:
    state = seen(start(), 10, announced=Known(BOTH), listed=Known(("k3",)))
    assert "listed" in set(state_signs(state))
    stalled = seen(state, 22, announced=Known(BOTH), listed=Unknown("timed out"))
    assert not {"listed", "list.empty"} & set(state_signs(stalled))


def unlisted(cards: tuple[ModelCard, ...], peers: Reading[Peers], *places: Instance) -> Verdict:
    """The verdict on announcements that stand while nothing is listed for 94 s."""
    state = start()
    announced = Announced(cards, places or (instance("prefill"), instance("decode")))
    for at in (1.0, 50.0, 95.0):
        state = seen(state, at, announced=Known(announced), listed=Known(()), peers=peers)
    return judge(state, TERMS)


UNKNOWN_MODEL = Absent("Model not found")


@pytest.mark.parametrize(
    ("cards", "peers", "cause", "certain"),
    [
        ((card("prefill"), card("decode")), UNKNOWN_MODEL, "list-empty-silent", False),
        ((card("prefill"), card("decode", name="k4")), UNKNOWN_MODEL, "names-differ", True),
        (
            (card("prefill"), card("decode", namespace="other")),
            Known(Peers(False, ("prefill",), ("decode",))),
            "namespaces-differ",
            True,
        ),
    ],
)  # fmt: skip
def test_an_empty_list_is_named_by_what_is_announced(
    cards: tuple[ModelCard, ...], peers: Reading[Peers], cause: str, certain: bool
) -> None:
    match = over(unlisted(cards, peers)).matches[0]
    assert (match.failure.id, match.is_certain) == (cause, certain)


def asked(chat: Chat, *, transport: str = "tcp", unreachable: tuple[str, ...] = ()) -> Verdict:
    state = start()
    places = (instance("prefill", transport=transport), instance("decode", transport=transport))
    announced = Known(Announced(BOTH.cards, places))
    for at in (1.0, 20.0):
        state = seen(state, at, announced=announced, listed=Known(("k3",)), chat=chat,
                     unreachable=unreachable)  # fmt: skip
    return judge(state, TERMS)


@pytest.mark.parametrize(
    ("chat", "more", "cause"),
    [
        (Chat(500, error="HTTP 500"), {"transport": "nats_tcp"}, "request-plane-differs"),
        (Chat(500, error="HTTP 500"), {"unreachable": ("10.0.0.4:9",)}, "worker-port-unreachable"),
        (Chat(200), {}, "empty-answer"),
    ],
)
def test_an_answer_that_fails_is_named(chat: Chat, more: dict[str, object], cause: str) -> None:
    assert over(asked(chat, **more)).matches[0].failure.id == cause  # type: ignore[arg-type]


def test_an_error_without_a_cause_is_tried_again() -> None:
    assert isinstance(asked(Chat(503, error="HTTP 503")), Waiting)


def test_a_request_that_hangs_is_told_when_its_time_is_up() -> None:
    state = start()
    for at in (1.0, 200.0):
        state = seen(state, at, announced=Known(BOTH), listed=Known(("k3",)),
                     chat=Chat(0, silent=True, error="no answer in 120 s"))  # fmt: skip
    assert over(judge(state, TERMS)).matches[0].failure.id == "answer-hangs"


def test_one_worker_that_did_both_is_no_pair() -> None:
    state = start()
    for at in (1.0, 20.0):
        state = seen(state, at, announced=Known(BOTH), listed=Known(("k3",)), chat=CHAT,
                     proof=Absent("worker 7 did both"))  # fmt: skip
    assert over(judge(state, TERMS)).matches[0].failure.id == "only-one-worker"


def test_unknown_etcd_does_not_hold_a_worker_up() -> None:
    blind = WorkerLook(run=UP, etcd=Unknown("its sshd forwards no connections"))
    state = seen(start(), 1, {PREFILL.key: blind})
    assert state.workers[PREFILL.key].stage is Stage.ENGINE


def test_what_never_ran_is_said_to_be_never_started_and_not_gone() -> None:
    never = {key: WorkerLook(Known(Run("gone")), GOOD) for key in start().workers}
    state = seen(start(), 1, never)
    assert {watched.waits_for for watched in state.workers.values()} == {"never started"}
    assert not state.is_started
    assert seen(start(), 1).is_started
