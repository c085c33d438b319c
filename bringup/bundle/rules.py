"""Whether a model folder holds what a frontend of a given release needs, as a table of rules.

Every row was seen in a real frontend (tests/bundle/test_doctor_real.py): it says what stays
missing, and what to do about it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..core.reading import Known, Reading, Unknown
from ..core.rules import Finding, Level, Row, Seen, Status, failed, judge, passed, warned
from .content import Content, TokenizerKind
from .names import shown
from .releases import RELEASES, Release, first_reading, first_rendering

SOURCE = "docs/bundle.md#what-a-frontend-reads"


@dataclass(frozen=True, slots=True)
class Folder:
    """A model folder and the frontend that will read it.

    `processor` is the frontend's ``--dyn-chat-processor``: "dynamo" reads tokenizer and template
    itself, "sglang" and "vllm" load the Hugging Face tokenizer with its Python files.
    """

    content: Content
    release: Reading[Release]
    processor: str = "dynamo"

    @property
    def native(self) -> bool:
        """Whether the frontend's own tokenizer and template code is in use."""
        return self.processor == "dynamo"


def _config(folder: Folder) -> Seen:
    match folder.content.document("config.json"):
        case Known():
            return passed(f"model_type {folder.content.model_type or 'not said'}")
        case Unknown(why):
            return failed(why)
    return failed("no config.json")


def _tokenizer(folder: Folder) -> Seen:
    found = folder.content.tokenizer
    if found is not None:
        return passed(f"tokenizer from {shown(found[1])}")
    several = sorted(name for name in folder.content.names if name.endswith(".tiktoken"))
    if several:
        return failed(f"several tiktoken files: {', '.join(map(shown, several))}")
    other = "tokenizer.model" in folder.content.names
    return failed("no tokenizer.json, no tiktoken.model" + (", only tokenizer.model" * other))


def _tokenizer_type(folder: Folder) -> Seen | None:
    """A tiktoken file says nothing of its own splitting pattern: Dynamo must know the model."""
    found, model_type = folder.content.tokenizer, folder.content.model_type
    if found is None or found[0] is not TokenizerKind.TIKTOKEN:
        return None
    known = f"{found[1]} of model_type {model_type!r}"
    first = first_reading(model_type)
    remedy = _read_by(first)
    if not folder.native:
        return warned(f"{known}, read by --dyn-chat-processor {folder.processor}", remedy=_LOAD)
    match folder.release:
        case Known(release):
            if model_type in release.tiktoken:
                return passed(f"{known}, known since {first.name if first else release.name}")
            return failed(f"{known}, unknown to Dynamo {folder.release.evidence}", remedy=remedy)
        case Unknown(why):
            lines = (
                f"unknown: {why}",
                known,
                f"read from {first.name if first else 'no release'} on",
            )
            return Seen(Status.UNKNOWN, lines, remedy=_SAY)
    return None


_SAY = "say which Dynamo will read it, as in --dynamo 1.3.0.post1"
_LOAD = "prove it in the frontend's image before you count on it: bringup bundle.check --load"


def _read_by(first: Release | None) -> str:
    newer = f"use a frontend of Dynamo {first.name} or newer; or " if first else ""
    return (
        f"{newer}start the frontend with --dyn-chat-processor sglang --trust-remote-code (needs "
        "sglang beside it); or put a tokenizer.json and a chat template into the model folder of "
        "every worker, restart the workers, and make the bundle anew"
    )


def _tokenizer_config(folder: Folder) -> Seen:
    match folder.content.document("tokenizer_config.json"):
        case Known():
            return passed("tokenizer_config.json is there")
        case Unknown(why):
            return failed(why)
    return failed("no tokenizer_config.json")


def _template(folder: Folder) -> Seen:
    if folder.content.template:
        return passed(folder.content.template)
    model_type = folder.content.model_type
    first = first_rendering(model_type)
    nothing = "no chat_template.jinja, no chat_template in tokenizer_config.json"
    if not folder.native:
        return warned(
            f"{nothing}; --dyn-chat-processor {folder.processor} makes the text", remedy=_LOAD
        )
    match folder.release:
        case Known(release) if model_type in release.renderers:
            return passed(f"chat text of {model_type} is built in since {release.name}")
        case Unknown(why) if first:
            lines = (f"unknown: {why}", nothing, f"built in for {model_type} from {first.name} on")
            return Seen(Status.UNKNOWN, lines, remedy=_SAY)
    newer = f"use a frontend of Dynamo {first.name} or newer, or " if first else ""
    return failed(nothing, remedy=newer + "put the model's chat_template.jinja into the folder of "
                  "every worker, restart the workers, and make the bundle anew")  # fmt: skip


def _end_of_sequence(folder: Folder) -> Seen:
    place = folder.content.end_of_sequence
    if place:
        return passed(f"end of sequence named in {place}")
    return failed("no eos_token_id or eos_token in any of the four files that may name it")


def _pointers(folder: Folder) -> Seen:
    """A pointer under a weight's name is as good as a weight; elsewhere the file is missing."""
    pointers = [one for one in folder.content.pointers if one.name in _TYPED]
    if not pointers:
        return passed("no file is a pointer")
    return failed(*(f"{one.name}: {one.detail}" for one in pointers))


_TYPED = (
    *("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"),
    *("tiktoken.model", "chat_template.jinja", "chat_template.json", "special_tokens_map.json"),
)


def _code(folder: Folder) -> Seen | None:
    wanted = folder.content.code_files
    missing = [name for name in wanted if name not in folder.content.names]
    if not wanted:
        return None
    if missing:
        return warned(f"auto_map names {', '.join(map(shown, missing))}, not in the folder")
    return passed(f"auto_map's {', '.join(map(shown, wanted))}")


_MAKE_ANEW = "then restart the workers (their cards name the files) and make the bundle anew"

ROWS: tuple[Row[Folder], ...] = (
    Row(
        "bundle-config", "The model's configuration is there", _config,
        "without config.json neither a worker nor a frontend starts", SOURCE,
        f"restore config.json from the model's own repository, {_MAKE_ANEW}",
    ),
    Row(
        "bundle-tokenizer", "There is a tokenizer that Dynamo can look for", _tokenizer,
        "the frontend turns text into tokens; it reads tokenizer.json, tiktoken.model or a single "
        "*.tiktoken, in this order, and never a sentencepiece tokenizer.model", SOURCE,
        "make one where transformers is installed: python -c \"from transformers import "
        "AutoTokenizer as T; T.from_pretrained('.', trust_remote_code=True).save_pretrained('.')\" "
        f"in the model folder of every worker, {_MAKE_ANEW}",
    ),
    Row(
        "bundle-tokenizer-type", "The frontend knows this model's tiktoken file", _tokenizer_type,
        "a tiktoken file has no splitting pattern in it; Dynamo knows the pattern by model_type",
        SOURCE,
    ),
    Row(
        "bundle-tokenizer-config", "The tokenizer's configuration is there", _tokenizer_config,
        "the frontend makes no prompt formatter without tokenizer_config.json", SOURCE,
        f"restore tokenizer_config.json from the model's own repository, {_MAKE_ANEW}",
    ),
    Row(
        "bundle-template", "There is a chat template, or a renderer for this model", _template,
        "without a template a chat model is never listed", SOURCE,
    ),
    Row(
        "bundle-end-of-sequence", "An end of sequence is named", _end_of_sequence,
        "a frontend that cannot tell where an answer ends does not list the model "
        "(https://github.com/ai-dynamo/dynamo/issues/10805)", SOURCE,
        f"restore generation_config.json from the model's own repository, {_MAKE_ANEW}",
    ),
    Row(
        "bundle-pointer", "No needed file is a pointer", _pointers,
        "a clone without Git LFS leaves pointers in place of large files", SOURCE,
        "in the model folder of every worker: git lfs pull --exclude '*.safetensors', "
        f"{_MAKE_ANEW}",
    ),
    Row(
        "bundle-code", "The tokenizer's own Python files are there", _code,
        "--dyn-chat-processor sglang and vllm load them with --trust-remote-code", SOURCE,
        "restore the *.py files from the model's own repository",
        levels={Status.WARN: Level.NOTE},
    ),
)  # fmt: skip


def judge_folder(folder: Folder) -> tuple[Finding, ...]:
    """Return what the rules say of a folder for the frontend that will read it."""
    return judge(ROWS, folder)


def readers(content: Content) -> Mapping[str, tuple[Finding, ...]]:
    """Return, for each release line, the findings that keep it from listing the model."""
    return {
        release.name: tuple(
            finding
            for finding in judge_folder(Folder(content, Known(release, release.name)))
            if finding.level is Level.BLOCK
        )
        for release in RELEASES
    }
