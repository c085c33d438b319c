"""What a deployment goes through until it serves, and what can be seen of it at one moment.

Times are seconds of a steady clock that the caller reads. Nothing here looks at anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from ..core.host import Mode
from ..core.reading import Reading, Unknown
from .cards import Announced


class Stage(IntEnum):
    """How far something has come, in order. A worker ends at REGISTERED, a deployment at READY."""

    ETCD = 0
    NATS = 1
    CONTAINER = 2
    ENGINE = 3
    REGISTERED = 4
    LISTED = 5
    ANSWERS = 6
    PAIRED = 7
    READY = 8


WAITS = {
    Stage.ETCD: "waits for etcd",
    Stage.NATS: "waits for NATS",
    Stage.CONTAINER: "waits for its container",
    Stage.ENGINE: "loads",
    Stage.REGISTERED: "waits to be registered",
    Stage.LISTED: "waits for the model to be listed",
    Stage.ANSWERS: "waits for one answer",
    Stage.PAIRED: "looks for the request in both workers",
    Stage.READY: "ready",
}
"""What is waited for while a stage is not passed."""


@dataclass(frozen=True, slots=True)
class Worker:
    """One container or process that is waited for: a rank of a worker, or what is in front.

    `registers`: announces itself in etcd. `url` answers once it is up, where it does not register.
    A rank above 0 does neither: it `follows` rank 0 (its key), and is up when that one is.
    """

    host: str
    role: str
    mode: Mode
    name: str
    script: str
    config: str
    image: str = ""
    addresses: tuple[str, ...] = ()  # under which its announcements name this host
    contained: bool = True
    engine: str = "docker"  # what runs the container
    log_file: str = ""
    last_log: str = ""  # of a container that was stopped
    state_file: str = ""  # of a process: its number, birth and configuration
    unit: str = ""  # the systemd unit that runs the script, "" where none does
    restarts: bool = False  # whether anybody starts it again when it ends
    registers: bool = True
    is_front: bool = False
    is_service: bool = False  # etcd or NATS
    pulls: str = ""  # the image by digest, brought where it is not there yet
    follows: str = ""
    url: str = ""
    metrics: str = ""  # URL of its counters, "" where nobody serves them
    timeout_s: int = 600

    @property
    def key(self) -> str:
        return f"{self.host}/{self.role}"


@dataclass(frozen=True, slots=True)
class Held:
    """IDs by one engine: the image a container was made from, and what its name stands for now."""

    made_from: str
    stands_for: str


NOT_LOOKED = Unknown("not looked at")


@dataclass(frozen=True, slots=True)
class Run:
    """A container or process as it stands. `status`: running, restarting, exited, dead, gone.

    `age_s` counts from its latest start. `config` is "" for what bringup did not start. `context`
    is the label of the image it was made from, "" where bringup did not build that.
    """

    status: str
    exit: int | None = None
    oom: bool = False
    count: int = 0  # restarts by the engine
    started: str = ""
    age_s: float | None = None
    config: str = ""
    error: str = ""
    held: Reading[Held] = NOT_LOOKED
    context: str = ""

    @property
    def is_up(self) -> bool:
        return self.status == "running"


@dataclass(frozen=True, slots=True)
class WorkerLook:
    """One worker at one moment. `lines` are those that its log has gained since the last look."""

    run: Reading[Run] = NOT_LOOKED
    etcd: Reading[bool] = NOT_LOOKED
    nats: Reading[bool] = NOT_LOOKED
    up: Reading[bool] = NOT_LOOKED
    lines: tuple[str, ...] = ()
    lost: str = ""  # why the host could not be looked at


@dataclass(frozen=True, slots=True)
class Peers:
    """What ``/v1/models/NAME/ready`` says: roles that are there, and those that are missing."""

    ready: bool
    present: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Chat:
    """What one streamed chat completion gave.

    `status` 0 means that no answer began. `workers` are instance ids by role, as the stream tells.
    """

    status: int
    request: str = ""  # the id in the response, without its prefix
    tokens: int = 0
    text: str = ""
    seconds: float = 0.0
    first_s: float | None = None  # until the first token
    workers: Mapping[str, int] = field(default_factory=dict)
    error: str = ""
    silent: bool = False  # not a byte came within the limit

    @property
    def is_good(self) -> bool:
        return self.status == 200 and self.tokens > 0 and not self.error


@dataclass(frozen=True, slots=True)
class Look:
    """Everything that was seen at one moment."""

    at: float
    workers: Mapping[str, WorkerLook] = field(default_factory=dict)
    announced: Reading[Announced] = NOT_LOOKED
    listed: Reading[tuple[str, ...]] = NOT_LOOKED
    peers: Reading[Peers] = NOT_LOOKED
    chat: Chat | None = None
    proof: Reading[str] = NOT_LOOKED
    unreachable: tuple[str, ...] = ()  # announced addresses that do not answer
