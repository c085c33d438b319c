"""What workers announce in discovery: model cards and instances, as Dynamo writes them.

Keys are ``v1/mdc/NAMESPACE/COMPONENT/ENDPOINT/ID`` (the card) and ``v1/instances/…`` (the address),
the same in etcd and, percent-encoded, as file names under file discovery. Seen in Dynamo
1.3.0.post1 and 1.6.1; the fields are those of https://github.com/ai-dynamo/dynamo,
lib/llm/src/model_card.rs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any
from urllib.parse import unquote, urlsplit

from ..core.reading import Known, Reading, Unknown

CARDS = "v1/mdc/"
INSTANCES = "v1/instances/"

SLOTS = ("model_info", "tokenizer", "prompt_formatter", "chat_template_file", "gen_config")
"""Fields of a card that name one file each; a frontend fetches all of them or lists nothing."""


class Where(Enum):
    """How a frontend gets at a file: from a folder, from the worker over HTTP, or from a hub."""

    FOLDER = "folder"
    WORKER = "worker"
    HUB = "hub"


@dataclass(frozen=True, slots=True)
class CardFile:
    """One file that a card names. `checksum` is ``blake3:…``; size in bytes, None when unsaid."""

    slot: str  # one of SLOTS, or "extra_files"
    kind: str  # as the card says, e.g. "tik_token_model"; "" for extra files
    location: str  # a path or a URL
    checksum: str
    size: int | None = None
    custom: bool = False  # a template given by hand: never looked for on a hub

    @property
    def name(self) -> str:
        return self.path.rstrip("/").rpartition("/")[2]

    @property
    def path(self) -> str:
        """The path alone: that on the worker's host, or the URL's."""
        if "://" not in self.location:
            return self.location
        return unquote(urlsplit(self.location).path)

    @property
    def where(self) -> Where:
        match self.location.partition("://")[0] if "://" in self.location else "file":
            case "http" | "https":
                return Where.WORKER
            case "file":
                return Where.FOLDER
        return Where.HUB


@dataclass(frozen=True, slots=True)
class ModelCard:
    """What one worker announces. `needs`: alternatives, each a set of peers it cannot do without.

    `worker_type` is "prefill", "decode", "aggregated" or another word of Dynamo's; "" when unsaid.
    """

    key: str
    namespace: str
    component: str
    endpoint: str
    instance: int
    name: str
    source_path: str
    files: tuple[CardFile, ...]
    worker_type: str = ""
    needs: tuple[tuple[str, ...], ...] = ()
    model_type: str = ""
    page_size: int | None = None  # tokens a KV cache block
    bootstrap: tuple[str, int] | None = None  # where decode workers fetch the KV cache
    aliases: tuple[str, ...] = ()

    def file(self, slot: str) -> CardFile | None:
        """Return the file of a slot, or None where the card names none."""
        return next((file for file in self.files if file.slot == slot), None)

    @property
    def instance_hex(self) -> str:
        return f"{self.instance:x}"


@dataclass(frozen=True, slots=True)
class Instance:
    """Where requests for one endpoint of one worker go. `address` is HOST:PORT under tcp."""

    key: str
    namespace: str
    component: str
    endpoint: str
    instance: int
    transport: str  # "tcp", "nats_tcp"
    address: str


@dataclass(frozen=True, slots=True)
class Announced:
    """All that discovery holds. `unreadable` keeps what could not be understood, by key."""

    cards: tuple[ModelCard, ...]
    instances: tuple[Instance, ...]
    unreadable: tuple[tuple[str, str], ...] = ()


def read_discovery(entries: Iterable[tuple[str, bytes]]) -> Announced:
    """Return cards and instances of discovery entries (key, value), by key; others are left out."""
    cards: list[ModelCard] = []
    instances: list[Instance] = []
    unreadable: list[tuple[str, str]] = []
    for key, value in sorted(entries):
        reading: Reading[ModelCard] | Reading[Instance]
        if key.startswith(CARDS):
            reading = parse_card(key, value)
        elif key.startswith(INSTANCES):
            reading = parse_instance(key, value)
        else:
            continue
        match reading:
            case Known(ModelCard() as card):
                cards.append(card)
            case Known(Instance() as instance):
                instances.append(instance)
            case Unknown(why):
                unreadable.append((key, why))
    return Announced(tuple(cards), tuple(instances), tuple(unreadable))


def key_of_file(relative: str) -> str:
    """Return the discovery key of a file under a file-discovery folder, given its relative path."""
    return unquote(relative)


def parse_card(key: str, value: bytes) -> Reading[ModelCard]:
    """Return the card in a value of discovery; garbage is unknown."""
    try:
        document = json.loads(value)
        return Known(_card(key, document), document["card_json"]["display_name"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return Unknown(f"no model card: {type(error).__name__} {error}", _shown(value))


def parse_instance(key: str, value: bytes) -> Reading[Instance]:
    """Return the instance in a value of discovery; garbage is unknown."""
    try:
        document = json.loads(value)
        transport, address = next(iter(document["transport"].items()))
        instance = Instance(key, *_place(document), transport, str(address).partition("/")[0])
    except (ValueError, KeyError, TypeError, AttributeError, StopIteration) as error:
        return Unknown(f"no instance: {type(error).__name__} {error}", _shown(value))
    return Known(instance, address)


def _card(key: str, document: Mapping[str, Any]) -> ModelCard:
    card = document["card_json"]
    endpoint = (card.get("runtime_config") or {}).get("disaggregated_endpoint") or {}
    host, port = endpoint.get("bootstrap_host"), endpoint.get("bootstrap_port")
    page_size = card.get("kv_cache_block_size")
    return ModelCard(
        key,
        *_place(document),
        name=str(card["display_name"]),
        source_path=str(card.get("source_path") or card["display_name"]),
        files=tuple(_files(card)),
        worker_type=str(card.get("worker_type") or ""),
        needs=tuple(tuple(str(peer) for peer in one) for one in card.get("needs") or ()),
        model_type=str(card.get("model_type") or ""),
        page_size=None if page_size is None else int(page_size),
        bootstrap=(str(host), int(port)) if host and port else None,
        aliases=tuple(str(alias) for alias in card.get("aliases") or ()),
    )


def _place(document: Mapping[str, Any]) -> tuple[str, str, str, int]:
    return (
        str(document["namespace"]),
        str(document["component"]),
        str(document["endpoint"]),
        int(document["instance_id"]),
    )


def _files(card: Mapping[str, Any]) -> Iterator[CardFile]:
    """Yield the typed files, ``{kind: file}`` or ``{kind: {is_custom, file}}``, then the extras."""
    for slot in SLOTS:
        for kind, value in (card.get(slot) or {}).items():
            file = value.get("file", value)
            yield _file(slot, kind, file, custom=bool(value.get("is_custom")))
    for extra in card.get("extra_files") or ():
        yield _file("extra_files", "", extra)


def _file(slot: str, kind: str, file: Mapping[str, Any], *, custom: bool = False) -> CardFile:
    size = file.get("size")
    return CardFile(
        slot,
        kind,
        str(file.get("path") or file["url"]),
        str(file["checksum"]),
        None if size is None else int(size),
        custom,
    )


def _shown(value: bytes) -> str:
    return value[:200].decode(errors="replace")
