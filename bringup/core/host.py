"""What people wrote down: hosts, kinds of host, deployments, and where each word stands.

`edge.inventory` reads these from YAML; nothing here reads a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from .errors import UsageError
from .nearest import did_you_mean

Scalar = str | int | float | bool


@dataclass(frozen=True, slots=True, order=True)
class Origin:
    """Where a word stands: file, line (1-based, 0 when unknown) and key path."""

    file: str = ""
    line: int = 0
    key: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place} {self.key}".strip()


@dataclass(frozen=True, slots=True)
class Login:
    """How to reach a host. Times are in seconds; `gateway` lists jumps, nearest first."""

    address: str
    port: int = 22
    user: str = ""
    key_file: str = ""
    certificate_file: str = ""
    agent: bool = False
    host_key: str = ""  # "SHA256:…" fingerprint that pins the key, else known_hosts decides
    gateway: tuple[Login, ...] = ()
    is_direct: bool = False  # `gateway: none`: no jump, whatever ~/.ssh/config says
    connect_s: float = 10.0
    keepalive_s: float = 15.0
    sudo: bool = False


@dataclass(frozen=True, slots=True)
class Repository:
    """A package repository that fixes may add to a host (`repositories:` of `hosts.yml`).

    `key` is the public key that signs it, as it stands in its file; without one, `fingerprint`
    names a key that the host trusts already.
    """

    name: str
    uri: str
    suites: tuple[str, ...] = ()  # for apt; one that ends in / is flat, and has no components
    components: tuple[str, ...] = ()
    key: bytes = b""
    fingerprint: str = ""
    packages: tuple[str, ...] = ()  # shell patterns of the packages that are taken from it
    systems: tuple[str, ...] = ()  # "ubuntu 24.04" or "ubuntu"; () is every one


@dataclass(frozen=True, slots=True)
class Host:
    """One host of the inventory, all group variables merged in."""

    name: str
    login: Login
    root: str = "/"
    kind: str = ""
    groups: tuple[str, ...] = ()
    gpu_count: int | None = None  # expected; host data, since a B200 host may hold two
    advertise: str = ""  # address under which other hosts reach this one
    repositories: tuple[Repository, ...] = ()
    knobs: Mapping[str, Scalar] = field(default_factory=dict)
    knob_origins: Mapping[str, Origin] = field(default_factory=dict)
    origin: Origin = Origin()

    @property
    def reached_at(self) -> str:
        """The address under which other hosts reach this one."""
        return self.advertise or self.login.address


@dataclass(frozen=True, slots=True)
class Kind:
    """Expected values of a kind of host (`inventory/kinds/*.yml`). None means: not stated.

    Units: memory MiB, power W, rates Gb/s per GPU, NVLink GB/s per link.
    """

    name: str
    product_names: tuple[str, ...]
    compute_capability: str = ""
    gpu_count: int | None = None
    memory_mib: int | None = None
    power_w: int | None = None
    nvlinks: int | None = None
    nvlink_gb_s: float | None = None
    fabric_manager: bool = False
    nvlsm: bool = False  # NVLink 5 boards: subnet manager, ib_umad and mlx5_ib needed
    rate_gb_s_per_gpu: float | None = None
    driver_floor: str = ""
    toolkit_floor: str = ""
    form: str = ""  # hgx, rack (NVL trays), pcie, unified (memory shared with the processor)
    open_module: bool = False  # the driver's open kernel module is the only one that works
    nccl_floor: str = ""
    start_budget_s: int | None = None
    knobs: Mapping[str, Scalar] = field(default_factory=dict)
    knob_origins: Mapping[str, Origin] = field(default_factory=dict)
    source: str = ""
    origin: Origin = Origin()


class Mode(Enum):
    """What a worker of a deployment does."""

    PREFILL = "prefill"
    DECODE = "decode"
    AGGREGATED = "aggregated"


@dataclass(frozen=True, slots=True)
class Model:
    """The model that a deployment serves. Sizes in GiB; `revision` may be empty."""

    served_name: str
    path: str
    revision: str = ""
    architecture: str = ""  # e.g. "kimi_k3"; "" when nobody said
    weights_gib: float | None = None
    mixture_of_experts: bool = False
    hybrid: bool = False  # has convolution or Mamba-like state
    draft_path: str = ""


@dataclass(frozen=True, slots=True)
class Role:
    """A pool of workers that do the same. `workers`: the hosts of each worker, rank 0 first."""

    name: str
    mode: Mode
    workers: tuple[tuple[str, ...], ...]
    gpus: tuple[int, ...] = ()  # GPUs of each host that a worker takes; () means all
    max_context: int | None = None
    knobs: Mapping[str, Scalar] = field(default_factory=dict)
    flags: Mapping[str, Scalar | None] = field(default_factory=dict)  # extra, checked as well
    env: Mapping[str, str] = field(default_factory=dict)
    knob_origins: Mapping[str, Origin] = field(default_factory=dict)
    origin: Origin = Origin()

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(host for worker in self.workers for host in worker)


@dataclass(frozen=True, slots=True)
class Services:
    """Where the shared services are. Endpoints are URLs; "" or () means: not used."""

    etcd: tuple[str, ...] = ()
    nats: str = ""
    frontend: str = ""
    namespace: str = "dynamo"
    host: str = ""  # where bringup itself runs those of the services that have an image below
    etcd_image: str = ""  # by digest: "NAME@sha256:…" or "sha256:…"; "" is run by somebody else
    nats_image: str = ""
    frontend_image: str = ""


@dataclass(frozen=True, slots=True)
class Image:
    """What an image folder promises (`images/NAME/image.yml`). "" means: nobody said."""

    name: str
    reference: str = ""  # repository:tag that hosts run
    digest: str = ""  # sha256:… once built
    engine_version: str = ""
    dynamo_version: str = ""
    nvcc: str = ""  # version inside, "none" when surely absent, "" when not stated
    flashinfer: str = ""  # "prebuilt": kernels of exactly its version are inside; "" not stated
    origin: Origin = Origin()


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a deployment's tokenizer bundle goes: the archive, and each host with its folder.

    A `file` that is not absolute lies in the inventory's folder.
    """

    file: str
    to: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Deployment:
    """One model served by roles on hosts."""

    name: str
    engine: str  # a name in bringup.engines
    model: Model
    image: Image
    roles: tuple[Role, ...]
    services: Services = Services()
    in_container: bool = True
    accept_tcp: bool = False  # the operator's word that KV may go over TCP
    bundle: Placement | None = None
    knobs: Mapping[str, Scalar] = field(default_factory=dict)
    knob_origins: Mapping[str, Origin] = field(default_factory=dict)
    origin: Origin = Origin()

    def roles_of(self, host: str) -> tuple[Role, ...]:
        """Return the roles that a host plays: more than one where each has its own GPUs."""
        return tuple(role for role in self.roles if host in role.hosts)

    def role_of(self, host: str) -> Role | None:
        """Return the first role that a host plays, or None."""
        return next(iter(self.roles_of(host)), None)


@dataclass(frozen=True, slots=True)
class Inventory:
    """All that was written down under one folder."""

    folder: str
    hosts: Mapping[str, Host]
    groups: Mapping[str, tuple[str, ...]]
    kinds: Mapping[str, Kind]
    deployments: Mapping[str, Deployment]
    images: Mapping[str, Image] = field(default_factory=dict)
    registry: str = ""
    registry_login: str = ""  # environment variable that holds user:password

    def deployment(self, name: str) -> Deployment:
        """Return a deployment by its name; raises UsageError for one that nobody wrote."""
        if name in self.deployments:
            return self.deployments[name]
        raise UsageError(
            f"cannot find deployment {name!r}{did_you_mean(name, self.deployments)}",
            remedy=f"there is one in {self.folder}/deployments for each",
        )

    def deployments_of(self, host: str) -> tuple[Deployment, ...]:
        """Return the deployments that a host has a role in, by name."""
        return tuple(d for _, d in sorted(self.deployments.items()) if d.role_of(host))
