"""A run over topologies: its rows, what it was made on, and the document that is kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..core.document import plain
from ..core.errors import Exit, gravest
from ..core.host import Deployment
from ..engines.topology_load import Topology
from .result import Measured
from .traffic import Traffic

SCHEMA = "bringup.bench/1"

MEASURED, FAILED, REFUSED, LEFT_OUT = "measured", "failed", "refused", "left out"


@dataclass(frozen=True, slots=True)
class Subject:
    """What was measured on what: results speak for each other where these agree."""

    model: str
    revision: str
    engine: str
    engine_version: str
    image: str  # digest, else reference, else name
    gpu: str  # product name, "" when nobody could look
    gpus: int
    driver: str = ""


def subject(deployment: Deployment, *, gpu: str, gpus: int, driver: str) -> Subject:
    """Return the subject of a deployment on some GPUs."""
    image, model = deployment.image, deployment.model
    return Subject(
        model.path, model.revision, deployment.engine, image.engine_version,
        image.digest or image.reference or image.name, gpu, gpus, driver,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """One topology: how far it came. `start_s` until it served, None where it never did.

    State is measured, failed (it was started, and did not serve or gave no result), refused
    (nothing was started) or left out (these GPUs cannot hold it).
    """

    topology: Topology
    state: str
    start_s: float | None = None
    results: tuple[Measured, ...] = ()
    why: str = ""
    cause: str = ""  # id of the failure's row in the catalogue, or of the finding
    evidence: str = ""
    fix: str = ""
    commands: tuple[str, ...] = ()
    log: str = ""  # file with the log of a start that failed
    seconds: float = 0.0

    def of(self, traffic: str) -> Measured | None:
        """Return what came of a traffic."""
        return next((one for one in self.results if one.traffic == traffic), None)

    @property
    def is_final(self) -> bool:
        """Whether the next run need not do it again."""
        return self.state != REFUSED


@dataclass(frozen=True, slots=True)
class Bench:
    """A run: what was measured, with what, and each topology's row. Facts are lines for people."""

    deployment: str
    host: str
    at: str  # ISO 8601, UTC
    subject: Subject
    traffic: tuple[Traffic, ...]
    topologies: tuple[Topology, ...]
    rows: tuple[Row, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    ended: str = ""

    @property
    def todo(self) -> tuple[Topology, ...]:
        """Topologies that have no final row."""
        done = {row.topology for row in self.rows if row.is_final}
        return tuple(one for one in self.topologies if one not in done)

    @property
    def is_finished(self) -> bool:
        return not self.todo

    def row(self, topology: Topology) -> Row | None:
        """Return a topology's row."""
        return next((row for row in self.rows if row.topology is topology), None)

    def continues(self, other: Bench) -> bool:
        """Whether this run may be gone on with as `other` is asked for."""
        mine = (self.deployment, self.host, self.subject, self.traffic)
        theirs = (other.deployment, other.host, other.subject, other.traffic)
        return mine == theirs and not self.is_finished


def with_row(rows: Iterable[Row], new: Row) -> tuple[Row, ...]:
    """Return rows with one more; it takes the place of an earlier one of its topology."""
    every = (*(row for row in rows if row.topology is not new.topology), new)
    return tuple(sorted(every, key=lambda row: list(Topology).index(row.topology)))


def code_of(bench: Bench) -> Exit:
    """Return how a run came out: what was left out is no fault, unless nothing else was asked."""
    codes = {FAILED: Exit.FAILED, REFUSED: Exit.BLOCKED, MEASURED: Exit.DONE}
    known = [codes[row.state] for row in bench.rows if row.state in codes]
    return gravest(known) if known else Exit.FAILED


METRICS: Mapping[str, bool] = {
    "output_tokens_s": True,
    "tpot_ms": False,
    "itl_p95_ms": False,
    "itl_p99_ms": False,
    "ttft_ms": False,
}
"""The columns of the table, and whether more is better."""


def best(bench: Bench, traffic: str, metric: str) -> Topology | None:
    """Return the topology with the best value of a metric, None unless two have one."""
    found = [
        (float(value), row.topology)
        for row in bench.rows
        if (one := row.of(traffic)) and not one.fault
        if (value := getattr(one, metric)) is not None
    ]
    if len(found) < 2:
        return None
    order = max if METRICS[metric] else min
    return order(found, key=lambda pair: pair[0])[1]


def document(bench: Bench) -> dict[str, Any]:
    """Return a run as plain data with its schema."""
    return {"schema": SCHEMA, "finished": bench.is_finished, **plain(bench)}


def read(data: Mapping[str, Any]) -> Bench:
    """Return the run in a document. Raises KeyError, TypeError or ValueError where it is none."""
    return Bench(
        data["deployment"],
        data["host"],
        data["at"],
        Subject(**data["subject"]),
        tuple(Traffic(**one) for one in data["traffic"]),
        tuple(Topology(one) for one in data["topologies"]),
        tuple(_row(one) for one in data["rows"]),
        dict(data["facts"]),
        data["ended"],
    )


def _row(data: Mapping[str, Any]) -> Row:
    results = tuple(Measured(**one) for one in data["results"])
    told = {**data, "topology": Topology(data["topology"]), "results": results}
    return Row(**{**told, "commands": tuple(data["commands"])})
