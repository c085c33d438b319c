"""Why a model is not listed: a table of causes, each with what shows it and what mends it.

Rows follow the way a model takes: announced, in the right namespace, with its peers, its files
found and the same, a tokenizer and a template in them, a cache to keep them in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..core.errors import Exit
from ..core.reading import Unknown
from ..core.rules import Finding, Level, Row, Seen, Status, judge, passed, unknown
from . import symptoms
from .evidence import Evidence
from .frontend_log import Cause
from .match import Fault

SOURCE = "docs/bundle.md#when-the-list-stays-empty"


def diagnose(evidence: Evidence) -> tuple[Finding, ...]:
    """Return what every row says of the evidence, in the order of the table."""
    return judge(ROWS, evidence)


def causes(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings that name something to mend, the gravest first."""
    wrong = (f for f in findings if f.status in (Status.FAIL, Status.WARN))
    return tuple(sorted(wrong, key=lambda finding: finding.status is not Status.FAIL))


def code_of(findings: Iterable[Finding]) -> Exit:
    """Return 0 where the model is listed and sound, 1 where a cause was found, else 3."""
    every = tuple(findings)
    if causes(every):
        return Exit.FAILED
    return Exit.DONE if is_sound(every) else Exit.UNREACHABLE


def is_sound(findings: Iterable[Finding]) -> bool:
    """Return whether the model is surely listed and nothing is wrong; not looked at is not."""
    every = tuple(findings)
    listed = any(f.id == "doctor-unexplained" and f.status is Status.PASS for f in every)
    return listed and not causes(every)


def _unexplained(evidence: Evidence) -> Seen | None:
    """Say what was not looked at, rather than that nothing is wrong."""
    if isinstance(evidence.listed, Unknown):
        return symptoms.unseen(evidence.listed.why, _LOOK_AT_FRONTEND)
    if evidence.is_listed:
        return passed(f"{evidence.name} is listed")
    named = judge(ROWS[:-1], evidence)
    if causes(named):
        return None
    readings = (evidence.announced, evidence.log, evidence.release)
    blind = [one.why for one in readings if isinstance(one, Unknown)]
    return unknown("nothing that was looked at explains it", *blind, *evidence.unseen())


_LOOK_AT_FRONTEND = "see that the frontend runs and answers from here: curl -s URL/live"


def _row(
    id_: str, title: str, look: Callable[[Evidence], Seen | None], reason: str, remedy: str = ""
) -> Row[Evidence]:
    levels = {Status.FAIL: Level.BLOCK, Status.WARN: Level.WARN}
    return Row(f"doctor-{id_}", title, look, reason, SOURCE, remedy, levels)


ROWS: tuple[Row[Evidence], ...] = (
    _row(
        "announced", "Workers announce the model", symptoms.announced,
        "a frontend lists only what workers announce, and they do so after loading (25 minutes for "
        "K3); a worker started with sglang.launch_server never does",
        "wait for the workers to load (bringup ready), else read their logs for the first error",
    ),
    _row(
        "namespace", "The frontend looks where the workers are", symptoms.namespace,
        "a frontend started with --namespace sees that one alone (dynamo means all); one on "
        "another etcd sees none of them",
        "start the frontend with the workers' namespace and the workers' ETCD_ENDPOINTS",
    ),
    _row(
        "roles", "Every worker has its peers", symptoms.roles,
        "prefill and decode are paired by name within one namespace; one alone serves nothing",
        "start the missing worker with the same --served-model-name and namespace, on the same "
        "ETCD_ENDPOINTS; nothing else has to be restarted",
    ),
    _row(
        "hub", "Files are named by path, not by a hub's name", symptoms.hub,
        "the frontend would ask a model hub; dynamo.mocker names one when --model-name differs "
        "from its folder",
        "start the worker with --model-path set to a folder that exists, and restart it",
    ),
    _row(
        "missing-file", "No announced file is missing",
        symptoms.files(Fault.MISSING, Cause.MISSING_FILE),
        "a frontend reads every announced file itself, at the worker's path or in its "
        "--model-path; without it, it asks a model hub for a path, which fails",
    ),
    _row(
        "longer-file", "No file is longer than announced",
        symptoms.files(Fault.LONGER, Cause.LONGER_FILE),
        "a frontend reads no more than the announced size",
    ),
    _row(
        "other-bytes", "No file has other bytes than announced",
        symptoms.files(Fault.OTHER, Cause.OTHER_BYTES),
        "a frontend compares each file's BLAKE3 with the worker's; a file at the worker's path is "
        "taken even when --model-path has the right one",
    ),
    _row(
        "unreadable-file", "The frontend may read the files",
        symptoms.told(Cause.UNREADABLE_FILE, symptoms.unreadable),
        "its user differs from the one who put them",
    ),
    _row(
        "self-hosted", "The frontend gets the files that workers serve",
        symptoms.told(Cause.SELF_HOSTED, lambda _: symptoms.SELF_HOSTED),
        "with DYN_SELF_HOST_METADATA the card names the worker's own port",
    ),
    _row(
        "no-tokenizer", "The card names a tokenizer", symptoms.no_tokenizer,
        "the worker's folder has no tokenizer.json, no tiktoken.model, no single *.tiktoken",
    ),
    _row(
        "no-tokenizer-config", "The card names tokenizer_config.json", symptoms.no_tokenizer_config,
        "without it the frontend makes no prompt",
    ),
    _row(
        "tokenizer-type", "The frontend knows the tokenizer's type", symptoms.tokenizer_type,
        "a tiktoken file has no splitting pattern; Dynamo knows the pattern by model_type",
    ),
    _row(
        "no-template", "There is a chat template", symptoms.template,
        "chat text is made from a template, or by a renderer that newer releases have for some "
        "models",
    ),
    _row(
        "no-end", "An end of sequence is named", symptoms.told(Cause.NO_END, symptoms.no_end),
        "without it the frontend cannot tell where an answer ends",
    ),
    _row(
        "cache", "The frontend's cache can be written",
        symptoms.told(Cause.CACHE, lambda _: symptoms.CACHE),
        "every file is copied into HOME/.cache/dynamo before it is read",
    ),
    _row(
        "interface", "The frontend can open its response port",
        symptoms.told(Cause.INTERFACE, lambda _: symptoms.INTERFACE),
        "the frontend opens the port that workers answer to while it adds a model",
    ),
    _row(
        "not-retried", "The frontend has tried since the files are right", symptoms.not_retried,
        "releases before 1.5 try once for each worker that comes, and never again",
    ),
    _row(
        "masked", "The folder would do for a new frontend", symptoms.masked,
        "a cached copy with the announced sum is used and the folder is never read: altered or "
        "missing files show only when a frontend starts with an empty cache",
    ),
    _row(
        "other", "The frontend names no other error", symptoms.other,
        "the frontend's own words are all there is",
        "read the line above; then search it at https://github.com/ai-dynamo/dynamo/issues",
    ),
    _row(
        "unexplained", "The model is listed", _unexplained,
        "what nobody could look at may be the cause",
        "give what could not be looked at: etcd, the frontend's log, its folder, its version",
    ),
)  # fmt: skip
