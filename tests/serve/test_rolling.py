"""A role is restarted, grows and shrinks while a real Dynamo frontend goes on answering."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, field

import pytest
import yaml

from bringup.edge.chat import chat
from bringup.readiness.stages import Chat
from bringup.readiness.stream import request
from tests.dynamo.processes import until

from .conftest import MakePractice
from .practice import NAME, Practice, _runs

# All hosts here are this machine, which has one lock: no two of these tests may change it at once.
pytestmark = [pytest.mark.root, pytest.mark.slow, pytest.mark.xdist_group("serve-rolling")]

QUICK = ("--every", "0.3")


@dataclass
class Clients:
    """Clients that ask one short question after the other; what became of each.

    They ask again once where an answer fails, as clients do: the frontend may hand a request to a
    worker in the moment in which it ends, and answers 500 then (1 of 385 on a busy machine).
    """

    url: str
    answers: list[Chat] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)
    threads: list[threading.Thread] = field(default_factory=list)

    def __enter__(self) -> Clients:
        self.threads = [threading.Thread(target=self._ask, daemon=True) for _ in range(2)]
        for thread in self.threads:
            thread.start()
        until(lambda: any(one.is_good for one in self.answers), "a client has its answer")
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        for thread in self.threads:
            thread.join(300)

    def _ask(self) -> None:
        wish = request(NAME, "Say one short sentence.", 8, names_workers=True)
        while not self.ended.is_set():
            answer = chat(self.url, wish, seconds=120)
            if not answer.is_good:
                time.sleep(2)
                answer = chat(self.url, wish, seconds=120)
            self.answers.append(answer)
            time.sleep(0.02)

    @property
    def failed(self) -> list[str]:
        return [one.error or "no token" for one in self.answers if not one.is_good]

    @property
    def decoders(self) -> set[int]:
        return {one.workers["decode"] for one in self.answers if "decode" in one.workers}


@pytest.fixture
def pool(deployment: MakePractice) -> Practice:
    """A prefill worker on h1, decode workers on h2 and h3, and a frontend: all serve."""
    made: Practice = deployment()
    made.add_spare("h3")
    made.write_scripts_by_facts()
    for host in ("h1", "h2", "h3"):  # one by one: they are one machine, which has one lock
        started = made.run("serve.start", "--host", host)
        assert started.returncode == 0, started.stdout + started.stderr
    waited = made.run("ready", *QUICK)
    assert waited.returncode == 0, waited.stdout + waited.stderr
    return made


def states(made: Practice) -> dict[str, str]:
    done = made.run("serve.status", "--json")
    rows = json.loads(done.stdout.splitlines()[-1])["workers"]
    return {f"{row['host']}/{row['role']}": row["state"] for row in rows}


def test_a_role_restarts_worker_by_worker_and_every_request_is_answered(pool: Practice) -> None:
    before = {host: pid(pool, host) for host in ("h2", "h3")}
    with Clients(pool.url) as clients:
        done = pool.run("serve.restart", "--role", "decode")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(f"{NAME} serves") == 2
    assert all(pid(pool, host) != number for host, number in before.items())
    assert clients.failed == [], f"{len(clients.failed)} of {len(clients.answers)}"
    assert len(clients.decoders) >= 3, "old and new workers have answered"


def test_a_worker_that_does_not_come_back_stops_the_roll(pool: Practice) -> None:
    kept = pid(pool, "h3")
    line = "RuntimeError: Could not find nvcc and default cuda_home='/usr/local/cuda' doesn't exist"
    pool.set("decode", say=line, exit=1)
    with Clients(pool.url) as clients:
        done = pool.run("serve.restart", "--role", "decode")
    assert done.returncode == 1, done.stdout + done.stderr
    assert pid(pool, "h3") == kept
    told = done.stdout + done.stderr  # by the start, or by the wait after it
    assert "FlashInfer finds no nvcc" in told
    assert "bringup provision --host h2 --check" in told
    assert "not restarted yet: decode on h3" in done.stdout
    assert (
        f"bringup serve.restart --deployment {NAME} --role decode --host h2 --host h3"
        in done.stdout
    )
    assert clients.failed == [], f"{len(clients.failed)} of {len(clients.answers)}"
    assert states(pool)["h3/decode"] == "runs"


def test_a_decode_host_is_added_and_removed_while_requests_are_answered(pool: Practice) -> None:
    first = {host: pid(pool, host) for host in ("h2", "h3")}
    pool.add_spare("h4")
    pool.write_scripts_by_facts()
    with Clients(pool.url) as clients:
        old = set(clients.decoders)
        added = pool.run("serve.start", "--wait")
        assert added.returncode == 0, added.stdout + added.stderr
        until(lambda: len(clients.decoders) == 3, "the new worker answers as well")
        pool.spares = ("h3",)
        pool.write_inventory()
        _keep_host(pool, "h4")
        removed = pool.run("serve.stop", "--host", "h4")
        assert removed.returncode == 0, removed.stdout + removed.stderr
        asked = len(clients.answers)
        until(lambda: len(clients.answers) > asked + 10, "clients go on")
    assert clients.failed == [], f"{len(clients.failed)} of {len(clients.answers)}"
    assert old < clients.decoders
    assert {host: pid(pool, host) for host in first} == first
    assert not _runs(pid(pool, "h4"))


def _keep_host(made: Practice, host: str) -> None:
    """The inventory goes on to know a host that plays no role any more."""
    path = made.inventory / "hosts.yml"
    known = yaml.safe_load(path.read_text())["hosts"]
    knobs = {"serve_folder": str(made.place(host) / "serve")}
    more = {host: {"address": "127.0.0.4", "user": "root", "knobs": knobs}}
    path.write_text(yaml.safe_dump({"hosts": {**known, **more}}))


def pid(made: Practice, host: str) -> int:
    folder = made.folder if host == "h2" else made.place(host)
    return int((folder / f"serve/{NAME}/{NAME}-decode.pid").read_text().split()[0])
