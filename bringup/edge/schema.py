"""What the files of an inventory may hold, key by key: strict pydantic models.

Shapes that mirror a value of `core.host` (kind, model, services, image) are derived from it, so
that a field is declared once. What the keys mean is said in the shipped `inventory/` files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    TypeAlias,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, create_model

from ..core.host import Image, Kind, Model, Scalar, Services
from . import forms
from .forms import (
    Absolute,
    Address,
    Count,
    Flags,
    HostKey,
    Knobs,
    Line,
    Lines,
    Name,
    Names,
    OwnFile,
    Port,
    Seconds,
    Switch,
    Word,
)


class Strict(BaseModel):
    """No unknown keys, no conversions. Every key may be left out; what is needed, `load` says."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    def said(self) -> dict[str, Any]:  # Any: values are what the fields hold
        """Return what the file says, by key, lists as tuples; keys left out are not there."""
        values = {name: getattr(self, name) for name in sorted(self.model_fields_set)}
        return {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in values.items()
        }


_FORMS: Mapping[object, Any] = {  # Any: annotations have no common type
    str: Line,
    bool: Switch,
    int | None: Count,
    float | None: forms.Amount,
    tuple[str, ...]: Lines,
    Mapping[str, Scalar]: Knobs,
}
"""How the fields of a core value are written in a file."""

_NOT_WRITTEN = {"origin", "knob_origins"}


def _mirror(value: type, own: Mapping[str, Any], without: Iterable[str] = ()) -> type[Strict]:
    """Return the strict model of a dataclass of core.host; `own` are forms of single keys."""
    hints = get_type_hints(value)
    names = [field.name for field in fields(value)]
    shape: dict[str, Any] = {  # Any: what create_model takes
        name: ((own.get(name) or _FORMS[hints[name]]) | None, None)
        for name in names
        if name not in _NOT_WRITTEN and name not in without
    }
    return create_model(f"{value.__name__}Entry", __base__=Strict, **shape)


if TYPE_CHECKING:  # mypy cannot see keys that are made at run time
    KindEntry: TypeAlias = Strict
    ModelEntry: TypeAlias = Strict
    ServicesEntry: TypeAlias = Strict
    ImageEntry: TypeAlias = Strict
else:
    KindEntry = _mirror(Kind, {}, without=("name",))
    ModelEntry = _mirror(Model, {"served_name": Word, "path": Absolute, "draft_path": Absolute})
    ServicesEntry = _mirror(
        Services,
        {
            "etcd": forms.WebUrls,
            "nats": forms.BusUrl,
            "frontend": forms.WebUrl,
            "namespace": Name,
            "host": Name,
            "etcd_image": forms.PinnedImage,
            "nats_image": forms.PinnedImage,
            "frontend_image": forms.PinnedImage,
        },
    )
    ImageEntry = _mirror(Image, {"name": Name, "reference": Word, "digest": forms.Digest})


class Settings(Strict):
    """What defaults, groups and hosts may say alike."""

    user: Word | None = None
    port: Port | None = None
    key_file: OwnFile | None = None
    certificate_file: OwnFile | None = None
    agent: Switch | None = None
    gateway: Lines | None = None
    connect_s: Seconds | None = None
    keepalive_s: Seconds | None = None
    sudo: Switch | None = None
    root: Absolute | None = None
    kind: Name | None = None
    gpu_count: Count | None = None
    knobs: Knobs | None = None


class GroupEntry(Settings):
    """A group: its members, and settings for all of them."""

    hosts: Lines | None = None
    groups: Names | None = None


class HostEntry(Settings):
    """A host, or hosts of a folded name; the settings that name one host stand here only."""

    address: Address | None = None
    host_key: HostKey | None = None
    advertise: Address | None = None


class KeyEntry(Strict):
    """What signs a repository: a file beside the inventory, or a key that hosts trust already."""

    file: Line | None = None
    sha256: forms.Sum | None = None
    fingerprint: forms.Fingerprint | None = None


class RepositoryEntry(Strict):
    """A repository of packages."""

    uri: forms.PackageUrl | None = None
    suites: Lines | None = None
    components: Lines | None = None
    key: KeyEntry | None = None
    packages: Lines | None = None
    systems: Lines | None = None


class HostsFile(Strict):
    """`hosts.yml`."""

    registry: forms.Registry | None = None
    registry_login: forms.Variable | None = None
    repositories: dict[str, RepositoryEntry] = Field(default_factory=dict)
    defaults: Settings = Settings()
    groups: dict[str, GroupEntry] = Field(default_factory=dict)
    hosts: dict[str, HostEntry | None] = Field(default_factory=dict)


class RoleEntry(Strict):
    """A role of a deployment; `hosts` or `workers` say who plays it."""

    mode: forms.ModeName | None = None
    hosts: Lines | None = None
    workers: list[Lines] | None = None
    nodes_per_worker: Count | None = None
    gpus: forms.Gpus | None = None
    max_context: Count | None = None
    knobs: Knobs | None = None
    flags: Flags | None = None
    env: forms.Variables | None = None


class BundleEntry(Strict):
    """Where `provision` places the tokenizer bundle: HOSTS:/FOLDER."""

    file: Word | None = None
    to: Lines | None = None


def _named(value: object) -> object:
    """A word stands for the image folder of that name."""
    return {"name": value} if isinstance(value, str) else value


class DeploymentEntry(Strict):
    """`deployments/NAME.yml`."""

    engine: Word | None = None
    model: ModelEntry | None = None
    image: Annotated[ImageEntry | None, BeforeValidator(_named)] = None
    roles: dict[str, RoleEntry] = Field(default_factory=dict)
    services: ServicesEntry | None = None
    bundle: BundleEntry | None = None
    in_container: Switch | None = None
    accept_tcp: Switch | None = None
    knobs: Knobs | None = None


def keys_of(model: type[BaseModel]) -> Iterator[tuple[str, ...]]:
    """Yield every key path that a model accepts; ``*`` stands for a name of the user's own."""
    for name, field in model.model_fields.items():
        yield (name,)
        for inner, path in _models_in(field.annotation):
            yield from ((name, *path, *rest) for rest in keys_of(inner))


def known_keys(model: type[BaseModel], path: tuple[str | int, ...]) -> tuple[str, ...]:
    """Return the keys that are known beside the last one of a path; () where any name may stand."""
    at = path[:-1]
    return tuple(
        keys[-1]
        for keys in keys_of(model)
        if len(keys) == len(path)
        and all(key in ("*", step) for key, step in zip(keys[:-1], at, strict=True))
    )


def _models_in(form: object) -> Iterator[tuple[type[BaseModel], tuple[str, ...]]]:  # Any: a type
    """Yield the models within an annotation, with the path that leads into each."""
    if isinstance(form, type) and issubclass(form, BaseModel):
        yield form, ()
    step = ("*",) if get_origin(form) in (dict, list) else ()
    for part in get_args(form):
        yield from ((model, (*step, *path)) for model, path in _models_in(part))
