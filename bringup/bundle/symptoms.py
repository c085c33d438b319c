"""What each cause of an empty model list looks like in the evidence, and what mends it.

Every function is the look of one row in `doctor.ROWS`: it returns None where it has nothing to say.
"""

from __future__ import annotations

from collections.abc import Callable

from ..core.reading import Known, Reading, Unknown, value_of
from ..core.rules import Seen, Status, failed, passed, unknown, warned
from ..readiness.cards import ModelCard, Where
from .evidence import ALL_NAMESPACES, Evidence
from .frontend_log import Cause
from .match import Fault
from .releases import Release, first_reading


def restart(evidence: Evidence) -> str:
    """Return who must be restarted once the frontend can read what it could not."""
    return restarting(evidence.release, evidence.name)


def restarting(release: Reading[Release], name: str = "the model") -> str:
    """Return who must be restarted for a frontend of a release to look again."""
    match release:
        case Known(line) if line.retries:
            return (
                f"restart nothing: Dynamo {release.evidence} tries again by itself, "
                "at the latest after 30 s"
            )
        case Known():
            which = f"Dynamo {release.evidence} tries only once"
        case _:
            which = "releases before 1.5 try only once"
    return f"restart the frontend, or all workers of {name} together: {which}"


def _restart_workers(evidence: Evidence) -> str:
    roles = sorted({card.worker_type or card.component for card in evidence.cards})
    return (
        f"restart every worker of {evidence.name} ({', '.join(roles)}) so that its card names the "
        "file, make the bundle anew, and push it to the frontend"
    )


def announced(evidence: Evidence) -> Seen:
    if isinstance(evidence.announced, Unknown):
        return unseen(evidence.announced.why, _LOOK_AT_ETCD)
    if evidence.cards:
        return passed(*(_line(card) for card in evidence.cards))
    names = sorted({card.name for card in evidence.all_cards})
    if names:
        return failed(
            f"no worker announces {evidence.name}; announced: {', '.join(names)}",
            remedy="give all workers of the model the same --served-model-name, and restart those "
            "that have another",
        )
    return failed("no worker has announced anything")


def unseen(why: str, remedy: str) -> Seen:
    return Seen(Status.UNKNOWN, (f"unknown: {why}",), remedy=remedy)


_LOOK_AT_ETCD = (
    "look at etcd from here: curl -s http://HOST:2379/health; it has to be the one in the "
    "workers' ETCD_ENDPOINTS"
)


def _line(card: ModelCard) -> str:
    role = card.worker_type or card.component
    return f"{card.name}: {role} in namespace {card.namespace}, id {card.instance_hex}"


def namespace(evidence: Evidence) -> Seen | None:
    """Which namespaces the frontend looks at. Told by its flag, else by its silence."""
    there = sorted({card.namespace for card in evidence.cards})
    if not there:
        return None
    match evidence.namespace:
        case Known(mine) if mine in ALL_NAMESPACES or mine in there:
            return passed(f"the frontend looks at {mine or 'all namespaces'}")
        case Known(mine):
            return failed(f"the frontend looks at {mine}, the workers are in {', '.join(there)}")
    silent = isinstance(evidence.log, Known) and evidence.tried is None
    if silent and evidence.is_unlisted and not _lacking(evidence):
        return failed(
            f"the frontend's log has not a word on {evidence.name}",
            f"the workers are in {', '.join(there)}",
            *((f"the frontend looks into {evidence.discovery}",) if evidence.discovery else ()),
        )
    return unknown(evidence.namespace.why if isinstance(evidence.namespace, Unknown) else "")


def _lacking(evidence: Evidence) -> tuple[str, ...]:
    """Return the peers that workers need and do not find in their own namespace."""
    lacking: set[str] = set()
    for card in evidence.cards:
        near = {c.worker_type for c in evidence.cards if c.namespace == card.namespace}
        if card.needs and not any(set(one) <= near for one in card.needs):
            lacking |= set(card.needs[0]) - near
    return tuple(sorted(lacking))


def roles(evidence: Evidence) -> Seen | None:
    if not evidence.cards:
        return None
    lacking = _lacking(evidence)
    ready = value_of(evidence.ready)
    if not lacking:
        return passed("every worker has the peers it needs")
    lines = [_line(card) for card in evidence.cards]
    lines += [f"/ready: missing {', '.join(ready.missing)}"] if ready and ready.missing else []
    lines += _elsewhere(evidence, lacking)
    return failed(f"no {' and no '.join(lacking)} worker for {evidence.name}", *lines)


def _elsewhere(evidence: Evidence, lacking: tuple[str, ...]) -> list[str]:
    """Workers of the missing kind under another name or namespace: the usual slip."""
    mine = {(card.name, card.namespace) for card in evidence.cards}
    apart = sorted({namespace for _, namespace in mine})
    lines = [
        f"but: {_line(card)}"
        for card in evidence.all_cards
        if card.worker_type in lacking and (card.name, card.namespace) not in mine
    ]
    if len(apart) > 1:
        lines.append(f"but: they are in different namespaces: {', '.join(apart)}")
    return lines


def files(fault: Fault, cause: Cause) -> Callable[[Evidence], Seen | None]:
    """Make the row of one fault: told by the folder where it was seen, else by the log."""

    def look(evidence: Evidence) -> Seen | None:
        if evidence.is_listed or not evidence.cards:
            return None
        faults = [str(one) for one in evidence.mismatches() if one.fault is fault]
        said = _said(evidence, cause)
        if faults or (said and evidence.unseen()):
            return failed(*dict.fromkeys(faults), *said, remedy=_push(evidence))
        unseen = evidence.unseen()
        return unknown("; ".join(unseen)) if unseen and evidence.is_unlisted else None

    return look


def _said(evidence: Evidence, cause: Cause) -> tuple[str, ...]:
    tried = evidence.tried
    return (f"log: {tried.error}",) if tried and tried.error and tried.cause is cause else ()


def _push(evidence: Evidence) -> str:
    folders = sorted({card.source_path for card in evidence.cards})
    where = ", ".join(folders)
    return (
        f"make a bundle from the worker's own {where} (bringup bundle.make), push it to {where} "
        f"where the frontend runs (bringup bundle.push), then {restart(evidence)}"
    )


def told(cause: Cause, remedy: Callable[[Evidence], str]) -> Callable[[Evidence], Seen | None]:
    """Make a row that the log alone can tell."""

    def look(evidence: Evidence) -> Seen | None:
        said = _said(evidence, cause)
        return failed(*said, remedy=remedy(evidence)) if said and not evidence.is_listed else None

    return look


def hub(evidence: Evidence) -> Seen | None:
    named = [f for card in evidence.cards for f in card.files if f.where is Where.HUB]
    said = _said(evidence, Cause.HUB_NAME)
    if evidence.is_listed or not (named or said):
        return None
    return failed(*sorted({file.location for file in named}), *said)


def no_tokenizer(evidence: Evidence) -> Seen | None:
    return _absent_slot(evidence, "tokenizer", Cause.NO_TOKENIZER)


def no_tokenizer_config(evidence: Evidence) -> Seen | None:
    return _absent_slot(evidence, "prompt_formatter", Cause.NO_TOKENIZER_CONFIG)


def _absent_slot(evidence: Evidence, slot: str, cause: Cause) -> Seen | None:
    """A card without the file tells it before the frontend does."""
    bare = [_line(card) for card in evidence.cards if card.file(slot) is None]
    said = _said(evidence, cause)
    if evidence.is_listed or not (bare or said) or evidence.processor != "dynamo":
        return None
    return failed(*bare, *said, remedy=_restart_workers(evidence))


def template(evidence: Evidence) -> Seen | None:
    said = _said(evidence, Cause.NO_TEMPLATE)
    if evidence.is_listed or not said:
        return None
    return failed(
        *said,
        remedy="put the model's chat_template.jinja into the model folder of every worker, "
        f"{_restart_workers(evidence)}; Kimi K3 needs none from Dynamo 1.5.0 on",
    )


def tokenizer_type(evidence: Evidence) -> Seen | None:
    said = _said(evidence, Cause.TOKENIZER_TYPE)
    if evidence.is_listed or not said:
        return None
    model_type = said[0].partition("model_type '")[2].partition("'")[0]
    first = first_reading(model_type)
    newer = f"use a frontend of Dynamo {first.name} or newer" if first else "no release reads it"
    return failed(
        *said,
        remedy=f"{newer}; or start the frontend with --dyn-chat-processor sglang "
        "--trust-remote-code; or put a tokenizer.json and a chat template into the model folder of "
        f"every worker, {_restart_workers(evidence)}",
    )


CACHE = (
    "give the frontend a HOME that it can write to (a folder, an emptyDir; it keeps the files "
    "under HOME/.cache/dynamo), and restart the frontend"
)


def unreadable(evidence: Evidence) -> str:
    return f"make the files readable for the frontend's user (0644), then {restart(evidence)}"


SELF_HOSTED = (
    "let the frontend reach the worker's DYN_SYSTEM_PORT at the address in the card, or set "
    "DYN_SELF_HOST_METADATA=0 on the workers, restart them, and push a bundle"
)


INTERFACE = (
    "give the frontend's DYN_TCP_RESPONSE_STREAM_HOST the name of an interface that has an "
    "address (eth0, not 10.0.0.5: releases before 1.6 take names only), and restart it"
)


def no_end(evidence: Evidence) -> str:
    return (
        "restore generation_config.json with an eos_token_id in the model folder of every worker, "
        + _restart_workers(evidence)
    )


def not_retried(evidence: Evidence) -> Seen | None:
    """All files are right by now, and the frontend gave up on a worker before they were."""
    given_up = _given_up(evidence)
    if not evidence.is_unlisted or not given_up or not evidence.cards:
        return None
    if evidence.mismatches() or evidence.unseen() or _lacking(evidence):
        return None
    return failed(
        "every announced file is there, byte for byte", *given_up, remedy=restart(evidence)
    )


def _given_up(evidence: Evidence) -> tuple[str, ...]:
    """What shows that the frontend lacks a worker that is announced: its log, or its readiness.

    A worker that was restarted alone is taken in, while its peer stays out.
    """
    tried, ready = evidence.tried, value_of(evidence.ready)
    if tried and tried.error and tried.cause not in _MENDED_BY_FILES:
        return ()
    log = (f"log: {tried.error}",) if tried and tried.cause in _MENDED_BY_FILES else ()
    there = {card.worker_type for card in evidence.cards}
    out = [role for role in ready.missing if role in there] if ready and not ready.ready else []
    return (*log, *(f"/ready: missing {role}, though one is announced" for role in out))


_MENDED_BY_FILES = (
    *(Cause.MISSING_FILE, Cause.LONGER_FILE, Cause.OTHER_BYTES, Cause.UNREADABLE_FILE),
)


def masked(evidence: Evidence) -> Seen | None:
    """It serves from its cache; the folder would not do for a frontend that starts anew."""
    faults = [str(one) for one in evidence.mismatches()]
    if not evidence.is_listed or not faults:
        return None
    return warned(*dict.fromkeys(faults), remedy=_push(evidence).rpartition(", then ")[0])


def other(evidence: Evidence) -> Seen | None:
    said = _said(evidence, Cause.OTHER)
    return failed(*said) if said and not evidence.is_listed else None
