"""Find what a weights verb speaks of: the source, the hosts and folders that are to hold it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

from ..core.errors import UsageError
from ..core.host import Inventory
from ..edge.actions import ScriptedRemote
from ..options.weights import Copying, ModelCopy
from .bundle_open import HERE, deployment_of, hosts_at, placed
from .types import Tools
from .weights import CopyWish, Place
from .weights_errand import Terms
from .weights_sums import read_sums


def places(words: Iterable[str], known: Inventory, tools: Tools) -> tuple[Place, ...]:
    """Return every folder that HOSTS:PATH words name, host patterns unfolded."""
    return tuple(place for word in words for place in _places(word, known, tools))


def _places(word: str, known: Inventory, tools: Tools) -> Iterator[Place]:
    for host, path, remote in placed(word, known, tools):
        # every remote of a fleet is a scripted one; the narrow protocol has no streams
        yield Place(host, path.rstrip("/") or "/", cast("ScriptedRemote", remote))


def targets_of(
    to: tuple[str, ...],
    deployment: str,
    hosts: tuple[str, ...],
    known: Inventory,
    tools: Tools,
    *,
    draft: bool = False,
) -> tuple[Place, ...]:
    """Return where weights are to be: the words of --to, or the hosts of a deployment.

    Raises UsageError where neither says it.
    """
    if to:
        return places(to, known, tools)
    served = deployment_of(known, deployment)
    if served is None:
        raise UsageError(
            "cannot tell where the weights are to go",
            remedy="add --to 'b300-[05-08]:/raid/models/NAME', or --deployment NAME",
        )
    names = dict.fromkeys(name for role in served.roles for name in role.hosts)
    chosen = [h.name for pattern in hosts for h in hosts_at(known, pattern)] or list(names)
    if strange := [name for name in chosen if name not in names]:
        raise UsageError(f"cannot copy to {strange[0]}: it has no role in {served.name}")
    path = served.model.draft_path if draft else served.model.path
    if not path:
        raise UsageError(f"cannot copy a draft model: {served.name} names none (model.draft_path)")
    return places((f"{name}:{path}" for name in chosen), known, tools)


def wish_of(what: ModelCopy, how: Copying, known: Inventory, tools: Tools) -> CopyWish:
    """Return what is wanted, in terms of hosts. Raises UsageError for words that make no sense."""
    _refuse(what, how)
    name, draft = what.deployment, what.draft
    targets = targets_of(what.to, name, what.host, known, tools, draft=draft)
    peers = targets_of((), name, (), known, tools, draft=draft) if name and not what.to else ()
    source = _source(what.from_, known, tools)
    return CopyWish(
        targets, source, () if source else peers, source is not None and source.host is HERE,
        what.mounted.rstrip("/"), how.every, how.replace, how.hashes or bool(how.sums),
        read_sums(how.sums) if how.sums else {},
        Terms(how.streams, round(how.limit_mb_s * 1e6), how.port, how.way == "through"),
        how.at_once,
    )  # fmt: skip


def _refuse(what: ModelCopy, how: Copying) -> None:
    if how.way not in ("direct", "through"):
        raise UsageError(f"cannot copy by way {how.way!r}", remedy="ways are direct, through")
    if what.from_ and what.mounted:
        raise UsageError("cannot copy from two places", remedy="say --from or --mounted")
    if what.mounted and not what.mounted.startswith("/"):
        raise UsageError(
            f"cannot use --mounted {what.mounted!r}: the path on the hosts has to be absolute",
            remedy="write it as --mounted /mnt/nas/models/NAME",
        )
    for name, value, least, most in (
        ("--streams", how.streams, 1, 8), ("--at-once", how.at_once, 1, 64),
        ("--limit-mb-s", how.limit_mb_s, 0, 1e6), ("--port", how.port, 0, 65535),
    ):  # fmt: skip
        if not least <= value <= most:
            raise UsageError(f"cannot take {name} {value:g}: it goes from {least:g} to {most:g}")


def _source(word: str, known: Inventory, tools: Tools) -> Place | None:
    if not word:
        return None
    found = places((word,), known, tools)
    if len(found) == 1:
        return found[0]
    raise UsageError(
        f"cannot copy from several hosts: {word!r} names {len(found)}",
        remedy="name one; hosts that have all hand it on by themselves",
    )
