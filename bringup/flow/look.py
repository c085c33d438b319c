"""Look at a deployment once: all hosts side by side, then discovery and the frontend."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import quote, urlsplit

from ..core.errors import ToolError
from ..core.reading import Known, Reading, Unknown
from ..core.remote import Dials, Remote
from ..core.script import compose, seconds_for, split
from ..edge import http, services
from ..edge.discovery import read_etcd
from ..edge.etcd import Etcd
from ..edge.pool import each
from ..probes.services import is_unasked, word
from ..readiness import frontend
from ..readiness.cards import Announced
from ..readiness.proof import requests, total
from ..readiness.stages import Look, Peers, Run, Worker, WorkerLook
from ..readiness.worker_ask import asks, log_name, parse_run, run_name
from ..readiness.worker_log import parse_log
from .targets import Target

ASK_S = 3.0
"""Most seconds for one answer of a service."""


@dataclass(slots=True)
class Looker:
    """Looks again and again; keeps where each log was read to."""

    target: Target
    remote: Callable[[str], Remote]
    nonce: Callable[[], str]
    cursors: dict[str, str] = field(default_factory=dict)

    def look(self) -> Look:
        """Return what is to be seen now. What nobody could look at is unknown, with why."""
        seen: dict[str, WorkerLook] = {}
        for outcome in each([host.name for host in self.target.hosts], self._host):
            if outcome.error is not None:
                if not isinstance(outcome.error, ToolError):
                    raise outcome.error
                lost = WorkerLook(lost=outcome.error.message)
                seen |= {w.key: lost for w in self.target.on(outcome.item)}
            seen |= outcome.value or {}
        opener = self.opener(seen)
        announced = self._announced(opener, seen)
        return Look(
            at=time.monotonic(),
            workers=seen,
            announced=announced,
            listed=self._listed(opener),
            peers=self._peers(opener),
            unreachable=self._unreachable(opener, announced),
        )

    def opener(self, seen: Mapping[str, WorkerLook] | None = None) -> http.Opener:
        """Return how to open connections from a host of the deployment that can be reached."""
        return self.dialer(self.stand(seen))

    def stand(self, seen: Mapping[str, WorkerLook] | None = None) -> str:
        """Return the host to look from: the frontend's where it is ours, else the first reached."""
        lost = {key.partition("/")[0] for key, look in (seen or {}).items() if look.lost}
        front = self.target.front
        names = [front.host] if front else []
        names += [host.name for host in self.target.hosts]
        return next((name for name in names if name not in lost), names[0])

    def dialer(self, host: str) -> http.Opener:
        """Return how to open connections from one host."""
        remote = self.remote(host)
        if isinstance(remote, Dials):
            return remote.dial
        return http.direct

    def _host(self, name: str) -> dict[str, WorkerLook]:
        workers = self.target.on(name)
        opener = self.dialer(name)
        etcd, nats = self._etcd(opener), self._nats(opener)
        found = self._ask(name, workers)
        return {
            worker.key: WorkerLook(run, etcd, nats, self._up(opener, worker), lines)
            for worker, run, lines in found
        }

    def _ask(
        self, name: str, workers: Iterable[Worker]
    ) -> list[tuple[Worker, Reading[Run], tuple[str, ...]]]:
        every = [(worker, asks(worker, self.cursors.get(worker.key, ""))) for worker in workers]
        flat = [ask for _, pair in every for ask in pair]
        nonce = self.nonce()
        host = self.target.inventory.hosts[name]
        script = compose(flat, nonce=nonce, root=host.root)
        result = self.remote(name).read(script, seconds=seconds_for(flat))
        answer = split(result.stdout, nonce=nonce)
        found = []
        for worker, _ in every:
            tail = parse_log(worker, answer[log_name(worker)], self.cursors.get(worker.key, ""))
            self.cursors[worker.key] = tail.cursor
            found.append((worker, parse_run(worker, answer[run_name(worker)]), tail.lines))
        return found

    def _etcd(self, opener: http.Opener) -> Reading[bool]:
        """Whether any endpoint is healthy as a host sees it: its word implies a quorum."""
        endpoints = self.target.deployment.services.etcd
        if not endpoints:
            return Unknown("no etcd is named")
        asked = each(endpoints, lambda one: Etcd((one,), "", None, ASK_S, opener).health()[one])
        told = {one.item: one.value or Unknown(str(one.error)) for one in asked}
        said = ", ".join(f"{one} {word(told[one])}" for one in endpoints)
        if any(isinstance(health, Known) and health.value for health in told.values()):
            return Known(True, said)
        return Unknown(said) if is_unasked(said) else Known(False, f"etcd: {said}")

    def _nats(self, opener: http.Opener) -> Reading[bool]:
        endpoint = self.target.deployment.services.nats
        if not endpoint:
            return Unknown("no NATS is named")
        reading = services.nats(opener, endpoint, ASK_S)
        if isinstance(reading, Known):
            return Known(True, reading.evidence)
        why = reading.why if isinstance(reading, Unknown) else "absent"
        return Unknown(why) if is_unasked(why) else Known(False, f"NATS: {endpoint} {why}")

    def _up(self, opener: http.Opener, worker: Worker) -> Reading[bool]:
        if not worker.url:
            return Unknown("not asked")
        try:
            answer = http.ask(worker.url, seconds=ASK_S, opener=opener)
        except ToolError as error:
            return Unknown(error.message)
        is_up = answer.status < 400 or (worker.is_front and answer.status < 500)
        return Known(is_up, f"{worker.url}: HTTP {answer.status}")

    def _announced(self, opener: http.Opener, seen: Mapping[str, WorkerLook]) -> Reading[Announced]:
        endpoints = self.target.deployment.services.etcd
        if not endpoints:
            return Unknown("no etcd is named")
        if not any(isinstance(one.etcd, Known) and one.etcd.value for one in seen.values()):
            return Unknown("no host sees a healthy etcd")
        try:
            return Known(read_etcd(Etcd(endpoints, seconds=ASK_S, opener=opener)))
        except ToolError as error:
            return Unknown(error.message)

    @property
    def frontend(self) -> str:
        """URL of what clients ask, as a host of the deployment sees it."""
        said = self.target.deployment.services.frontend
        if said:
            return said.rstrip("/")
        front = self.target.front or next((w for w in self.target.workers if w.url), None)
        parts = urlsplit(front.url if front else "")
        return f"http://{parts.netloc}" if parts.netloc else ""

    def _listed(self, opener: http.Opener) -> Reading[tuple[str, ...]]:
        return frontend.listed(self._document(opener, "/v1/models"))

    def _peers(self, opener: http.Opener) -> Reading[Peers]:
        name = quote(self.target.deployment.model.served_name, safe="")
        return frontend.peers(self._document(opener, f"/v1/models/{name}/ready"))

    def _document(self, opener: http.Opener, path: str) -> Reading[object]:
        if not self.frontend:
            return Unknown("the deployment names no frontend")
        try:
            return http.ask(self.frontend + path, seconds=ASK_S, opener=opener).document
        except ToolError as error:
            return Unknown(error.message)

    def _unreachable(self, opener: http.Opener, announced: Reading[Announced]) -> tuple[str, ...]:
        """Announced addresses of this deployment's model that do not answer from our host."""
        if not isinstance(announced, Known):
            return ()
        name = self.target.deployment.model.served_name
        ids = {card.instance for card in announced.value.cards if card.name == name}
        places = {
            one.address
            for one in announced.value.instances
            if one.instance in ids and one.transport == "tcp"
        }
        return tuple(sorted(place for place in places if not _answers(opener, place)))

    def counters(self, *, asked: bool) -> dict[str, float | None]:
        """Return how many requests the workers of each mode have counted, before or after one."""
        by_mode: dict[str, list[float | None]] = {}
        for worker in self.target.workers:
            if worker.metrics and not worker.is_front:
                by_mode.setdefault(worker.mode.value, []).append(self._counted(worker, asked=asked))
        return {mode: total(values) for mode, values in by_mode.items()}

    def _counted(self, worker: Worker, *, asked: bool) -> float | None:
        with contextlib.suppress(ToolError):
            answer = http.ask(worker.metrics, seconds=ASK_S, opener=self.dialer(worker.host))
            is_page = answer.status == HTTPStatus.OK
            return requests(answer.text, asked=asked) if is_page else None
        return None


def _answers(opener: http.Opener, place: str) -> bool:
    host, _, port = place.rpartition(":")
    try:
        opener(host.strip("[]"), int(port), ASK_S).close()
    except (OSError, ValueError):
        return False
    except ToolError:
        return True  # nobody could look
    return True
