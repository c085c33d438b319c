"""Every state that a real Dynamo can be in while it comes up, and what `ready` says of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from bringup.edge.etcd import Etcd
from tests.dynamo.fixtures import MakeLoopback
from tests.dynamo.loopback import Loopback
from tests.dynamo.processes import free_ports

from .conftest import MakePractice
from .practice import NAME, Practice, until

pytestmark = pytest.mark.slow

QUICK = ("--every", "0.3", "--budget", "listed=8", "--budget", "container=6")
"""For what never comes up: the stage it stands in is over soon."""

PATIENT = ("--every", "0.3", "--budget", "listed=240", "--budget", "registered=240")
"""For what comes up, if late on a busy machine."""


def ready(made: Practice, *more: str, how: tuple[str, ...] = QUICK) -> dict[str, Any]:
    """Run `ready --json` and return its last object."""
    done = made.run("ready", "--json", *how, *more)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    verdicts: list[dict[str, Any]] = [one for one in found if one["schema"] == "bringup.ready/1"]
    assert verdicts, done.stdout + done.stderr
    return verdicts[-1] | {"exit": done.returncode, "events": found[:-1]}


def hold(made: Practice, *modes: str, **more: Any) -> Path:
    """Let workers load, from their next start on, until the file that is returned is removed."""
    loading = made.folder / "loading"
    loading.touch()
    for mode in modes:
        made.set(mode, words=["--load-while", str(loading)], **more)
    return loading


def comes_up(made: Practice, loading: Path) -> list[dict[str, Any]]:
    """Wait until it serves, watched from its loading on; return all that `ready --json` says."""
    waiting = made.begin("ready", "--json", *PATIENT)
    waiting.says('"host": "h2/decode", "stage": "engine"')
    loading.unlink()
    assert waiting.ends(seconds=600) == 0, waiting.tail
    return [json.loads(line) for line in waiting.log.splitlines()]


def serves(made: Practice) -> dict[str, Any]:
    """Wait until it serves, and return what `ready --json` says last."""
    seen = ready(made, how=PATIENT)
    assert (seen["exit"], seen["verdict"]) == (0, "ready"), seen
    return seen


def causes(verdict: dict[str, Any]) -> list[str]:
    return [cause["id"] for cause in verdict["causes"]]


def test_a_pair_goes_through_all_stages_in_order(deployment: MakePractice) -> None:
    made = deployment()
    loading = hold(made, "prefill", "decode")
    made.start()
    *events, seen = comes_up(made, loading)
    assert "worker ids in the stream: prefill" in seen["proof"]
    assert "on h1" in seen["proof"]
    assert "on h2" in seen["proof"]
    stages = [e["stage"] for e in events if e["host"] == "h2/decode"]
    assert stages[0] == "engine"
    assert stages[-1] == "listed"
    whole = [e["stage"] for e in events if e["host"] == NAME]
    assert whole[-2:] == ["answers", "ready"]
    serves(made)


def test_loading_workers_are_waited_for_and_their_second_start_is_foreseen(
    deployment: MakePractice,
) -> None:
    made = deployment()
    loading = hold(made, "prefill", "decode")
    made.start()
    now = ready(made, "--now")
    assert (now["exit"], now["verdict"], now["left_s"]) == (1, "waiting", None)
    assert {w["role"]: w["stage"] for w in now["workers"]}["decode"] == "engine"
    comes_up(made, loading)
    loading.touch()
    made.start()
    again = ready(made, "--now")
    assert {w["role"]: w["stage"] for w in again["workers"]}["decode"] == "engine"
    assert again["left_s"] is not None


@pytest.mark.parametrize(("there", "missing"), [("prefill", "h2/decode"), ("decode", "h1/prefill")])
def test_one_side_alone_waits_for_the_other_and_names_it(
    deployment: MakePractice, there: str, missing: str
) -> None:
    made = deployment()
    made.start(there, "frontend")
    seen = ready(made)
    assert (seen["verdict"], seen["who"], seen["stage"]) == ("over", missing, "container")
    assert "waits for its container" in seen["why"]


def test_a_worker_that_registers_elsewhere_is_told_as_that(deployment: MakePractice) -> None:
    made = deployment()
    kept = str(made.folder / "discovery")
    made.set("decode", env={"DYN_DISCOVERY_BACKEND": "file", "DYN_FILE_KV": kept})
    made.start()
    seen = ready(made, "--budget", "registered=5")
    assert (seen["who"], seen["stage"], causes(seen)) == (
        "h2/decode", "registered", ["not-registered"],
    ), seen  # fmt: skip
    assert "etcd has nothing of it" in seen["why"]
    assert causes(diagnosed(made)["h2/decode"]) == ["not-registered"]


def test_different_names_are_told_at_once(deployment: MakePractice) -> None:
    made = deployment()
    made.set("decode", name="another")
    made.start()
    seen = ready(made, "--budget", "registered=900")
    assert causes(seen)[0] == "names-differ"
    assert seen["seconds"] < 450, "not when the stage is over"


def test_different_namespaces_are_told_at_once(deployment: MakePractice) -> None:
    made = deployment()
    made.set("decode", words=["--namespace", "elsewhere"])
    made.start()
    assert causes(ready(made))[0] == "namespaces-differ"


def test_a_frontend_without_the_files_is_told_with_file_and_cure(deployment: MakePractice) -> None:
    made = deployment()
    made.start("prefill", "decode")
    until(lambda: len(made.dynamo.announced().cards) >= 2, "both are announced")
    (made.model / "tokenizer_config.json").unlink()
    made.start("frontend")
    seen = ready(made, "--budget", "listed=900")
    assert causes(seen)[0] == "list-empty-files"
    assert "doctor-missing-file" in {finding["id"] for finding in seen["findings"]}
    assert seen["seconds"] < 450, "not when the stage is over"


def test_a_frontend_elsewhere_that_lists_nothing_is_told_as_likely_files(
    deployment: MakePractice, shared_loopback: Loopback
) -> None:
    made = deployment(with_front=False)
    front = shared_loopback.frontend(namespace="elsewhere")
    made.write_inventory(frontend=front.url.replace("127.0.0.1", "localhost"))
    made.write_scripts()
    made.start()
    seen = ready(made)
    front.program.kill()
    assert causes(seen)[0] == "list-empty-silent"
    assert not seen["causes"][0]["certain"]


def test_a_frontend_that_looks_at_another_namespace_is_told(deployment: MakePractice) -> None:
    made = deployment()
    made.set("frontend", words=["--namespace", "elsewhere"])
    made.start()
    seen = ready(made)
    assert "doctor-namespace" in {finding["id"] for finding in seen["findings"]}, seen
    assert causes(seen)[0] == "list-empty-silent"


def test_workers_on_another_request_plane_are_told(
    deployment: MakePractice, loopback: MakeLoopback
) -> None:
    dynamo = loopback()
    dynamo.start_nats()
    made = deployment(dynamo)
    for mode in ("prefill", "decode"):
        made.set(mode, env={"DYN_REQUEST_PLANE": "nats"})
    made.set("frontend", env={"DYN_REQUEST_PLANE": "tcp"})
    made.start()
    seen = ready(made)
    assert seen["verdict"] == "over", seen
    assert causes(seen)[0] in ("request-plane-mismatch", "request-plane-differs")
    assert "nats" in [w["stage"] for w in seen["workers"]] or seen["stage"] == "answers"


def test_a_pair_on_nats_serves(deployment: MakePractice, loopback: MakeLoopback) -> None:
    dynamo = loopback()
    dynamo.start_nats()
    made = deployment(dynamo)
    for part in ("prefill", "decode", "frontend"):
        made.set(part, env={"DYN_REQUEST_PLANE": "nats", "DYN_EVENT_PLANE": "nats"})
    made.start()
    serves(made)


def test_a_worker_whose_announced_port_does_not_answer_is_told(deployment: MakePractice) -> None:
    made = deployment()
    made.start("prefill", "decode")
    until(lambda: len(made.dynamo.announced().cards) >= 2, "both are announced")
    _announce_wrong_port(made)
    made.start("frontend")
    seen = ready(made)
    assert causes(seen)[0] == "worker-port-unreachable", seen
    assert seen["stage"] == "answers"


def _announce_wrong_port(made: Practice) -> None:
    assert made.dynamo.etcd is not None
    client: Etcd = made.dynamo.etcd.client
    (closed,) = free_ports(1)
    for entry in client.range("v1/instances/"):
        value = json.loads(entry.value)
        host, _, rest = value["transport"]["tcp"].partition(":")
        value["transport"]["tcp"] = f"{host}:{closed}/{rest.partition('/')[2]}"
        client.put(entry.key, json.dumps(value).encode(), lease=entry.lease)


@pytest.mark.root
def test_workers_that_cannot_call_the_frontend_back_are_told(deployment: MakePractice) -> None:
    made = deployment()
    (port,) = free_ports(1)
    made.set("frontend", env={"DYN_TCP_RESPONSE_STREAM_PORT": str(port)})
    rule = ["-p", "tcp", "--dport", str(port), "-j", "REJECT", "--reject-with", "tcp-reset"]
    made.start()
    _filter("-I", *rule)
    try:
        seen = ready(made, "--answer-within", "10")
    finally:
        _filter("-D", *rule)
    assert causes(seen)[0] == "response-port-blocked", seen


@pytest.mark.root
def test_a_request_whose_answer_is_dropped_on_the_way_is_told_as_hanging(
    deployment: MakePractice,
) -> None:
    made = deployment()
    (port,) = free_ports(1)
    made.set("frontend", env={"DYN_TCP_RESPONSE_STREAM_PORT": str(port)})
    rule = ["-p", "tcp", "--dport", str(port), "-j", "DROP"]
    made.start()
    _filter("-I", *rule)
    try:
        seen = ready(made, "--answer-within", "5", "--budget", "answers=12")
    finally:
        _filter("-D", *rule)
    assert seen["stage"] == "answers", seen
    assert causes(seen)[0] in ("answer-hangs", "response-port-blocked"), seen


def _filter(*words: str) -> None:
    """Dynamo 1.3 listens on the loopback's address of IPv6, later ones on that of IPv4."""
    for program in ("iptables", "ip6tables"):
        subprocess.run([program, "-w", words[0], "INPUT", *words[1:]], check=True)


def test_a_worker_killed_during_the_wait_ends_it(deployment: MakePractice) -> None:
    made = deployment()
    for mode in ("prefill", "decode"):
        made.set(mode, words=["--load-s", "900"])
    made.start()
    waiting = made.begin("ready", "--json", *QUICK)
    waiting.says('"host": "h2/decode", "stage": "engine"')
    os.killpg(made.pid("decode"), signal.SIGKILL)
    assert waiting.ends() == 1, waiting.tail
    last = json.loads(waiting.log.splitlines()[-1])
    assert (last["who"], last["why"]) == ("h2/decode", "it is gone")


def test_a_worker_that_says_why_it_cannot_load_ends_the_wait_at_once(
    deployment: MakePractice,
) -> None:
    made = deployment()
    why = "RuntimeError: Could not find nvcc and default cuda_home='/usr/local/cuda' doesn't exist"
    made.set("decode", say=why, words=["--load-s", "900"])
    made.start()
    seen = ready(made)
    assert (seen["who"], causes(seen)[0]) == ("h2/decode", "flashinfer-no-nvcc")
    assert seen["causes"][0]["command"] == "bringup provision --host h2 --check"
    assert seen["seconds"] < 450, "not when it has loaded"


def test_an_etcd_that_is_away_for_a_moment_is_told_and_waited_for(
    deployment: MakePractice, loopback: MakeLoopback
) -> None:
    dynamo = loopback()
    assert dynamo.etcd is not None
    made = deployment(dynamo)
    loading = hold(made, "prefill", "decode", env={"ETCD_LEASE_TTL": "600"})
    made.start()
    waiting = made.begin("ready", "--json", *PATIENT, "--budget", "etcd=600")
    waiting.says('"host": "h2/decode", "stage": "engine"')
    dynamo.etcd.program.freeze()
    waiting.says('"stage": "etcd"')
    dynamo.etcd.program.thaw()
    loading.unlink()
    assert waiting.ends(seconds=600) == 0, waiting.tail
    assert json.loads(waiting.log.splitlines()[-1])["verdict"] == "ready"


def test_a_lease_that_is_lost_ends_the_wait_and_is_named(deployment: MakePractice) -> None:
    made = deployment()
    made.set("decode", words=["--load-s", "900"])
    made.start("prefill", "decode")
    until(lambda: len(made.dynamo.announced().cards) == 1, "prefill is announced")
    assert made.dynamo.etcd is not None
    client: Etcd = made.dynamo.etcd.client
    client.revoke(client.range("v1/mdc/")[0].lease)
    until(lambda: "lease expired" in made.log("prefill"), "prefill loses its lease")
    seen = ready(made)
    assert (seen["who"], causes(seen)[0]) == ("h1/prefill", "lease-lost"), seen


def test_a_frontend_that_is_started_anew_does_not_end_the_wait(deployment: MakePractice) -> None:
    made = deployment()
    loading = hold(made, "decode")
    made.start()
    waiting = made.begin("ready", "--json", *PATIENT, "--budget", "container=240")
    waiting.says('"host": "h1/frontend", "stage": "listed"')
    assert made.script("frontend", "--stop").returncode == 0
    made.start("frontend")
    loading.unlink()
    assert waiting.ends(seconds=600) in (0, 1), waiting.tail
    last = json.loads(waiting.log.splitlines()[-1])
    assert last["verdict"] == "ready" or last["who"] == "h1/frontend"


def diagnosed(made: Practice) -> dict[str, dict[str, Any]]:
    """What `diagnose --deployment` says of each worker, and of the whole by its model's name."""
    done = made.run("diagnose", "--json")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    rows = [row for row in found if row["schema"] == "bringup.diagnosis/1"]
    assert rows, done.stdout + done.stderr
    return {row["source"]: row | {"exit": done.returncode} for row in rows}


def test_a_deployment_that_serves_is_told_as_well(deployment: MakePractice) -> None:
    made = deployment()
    made.start()
    serves(made)
    found = diagnosed(made)
    assert {key: row["well"] for key, row in found.items()} == {
        "h1/prefill": True, "h2/decode": True, "h1/frontend": True, NAME: True,
    }  # fmt: skip
    assert found[NAME]["stands"].startswith("serves: worker ids in the stream")
    assert found[NAME]["exit"] == 0


def test_states_are_named_at_one_look(deployment: MakePractice) -> None:
    """The rows of one table, one after the other, on one deployment."""
    made = deployment()
    made.start("prefill", "frontend")
    until(lambda: len(made.dynamo.announced().cards) == 1, "prefill is announced")
    found = diagnosed(made)
    assert causes(found["h2/decode"]) == ["not-there"]
    assert found["h1/prefill"]["well"]
    assert "list.empty" not in str(found[NAME])

    made.set("decode", words=["--namespace", "elsewhere"])
    made.start("decode")
    until(lambda: len(made.dynamo.announced().cards) == 2, "both are announced")
    assert causes(diagnosed(made)[NAME])[0] == "namespaces-differ"

    made.set("decode", name="another")
    made.start("decode")
    until(lambda: "another" in {c.name for c in made.dynamo.announced().cards}, "it is announced")
    assert causes(diagnosed(made)[NAME])[0] == "names-differ"

    made.set("decode")
    made.start("decode")
    serves(made)
    os.killpg(made.pid("decode"), signal.SIGKILL)
    found = diagnosed(made)
    assert causes(found["h2/decode"]) == ["not-there"]
    assert causes(found[NAME]) == [], "what a dead worker entails is no cause of its own"
    assert found[NAME]["stands"] == "waits for h2/decode"

    made.start("decode")
    os.killpg(made.pid("frontend"), signal.SIGKILL)
    found = diagnosed(made)
    assert "not-there" in causes(found["h1/frontend"]), found["h1/frontend"]
    assert causes(found[NAME]) == ["frontend-down"]


def test_an_etcd_that_is_away_is_named_for_every_worker(
    deployment: MakePractice, loopback: MakeLoopback
) -> None:
    dynamo = loopback()
    assert dynamo.etcd is not None
    made = deployment(dynamo)
    for mode in ("prefill", "decode"):
        made.set(mode, words=["--load-s", "900"])
    made.start("prefill", "decode")
    dynamo.etcd.program.freeze()
    found = diagnosed(made)
    dynamo.etcd.program.thaw()
    for key in ("h1/prefill", "h2/decode"):
        assert causes(found[key])[0] == "etcd-down", found[key]
        assert found[key]["causes"][0]["command"] == f"curl -s {dynamo.etcd.url}/health"


def test_one_log_is_followed_at_a_time(deployment: MakePractice) -> None:
    refused = deployment().run("serve.logs", "--follow", "5")
    assert refused.returncode == 2
    assert "--host h2 --role decode" in refused.stderr
