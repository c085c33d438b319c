"""The words that an `image.yml` may have, and how a wrong one is told."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from ..core.nearest import did_you_mean
from . import yaml_marks


def _form(pattern: str, wanted: str) -> AfterValidator:
    """Refuse text that does not match, saying what was wanted rather than the pattern."""

    def check(text: str) -> str:
        if re.fullmatch(pattern, text) is None:
            raise ValueError(f"{text!r} should be {wanted}")
        return text

    return AfterValidator(check)


Sum = Annotated[str, _form("new|[0-9a-f]{64}", "a sha256 of 64 hex digits, or new")]
Digest = Annotated[str, _form("sha256:[0-9a-f]{64}", "sha256: and 64 hex digits in lower case")]
Reference = Annotated[
    str,
    _form(
        r"[a-z0-9][A-Za-z0-9.-]*(:\d+)?(/[a-z0-9._-]+)*(:[A-Za-z0-9_][A-Za-z0-9_.-]*)?",
        "a repository and a tag, as lmsysorg/sglang:kimi-k3; a digest stands under digest:",
    ),
    _form(r"[^/]*/.*|[^A-Z]*(:.*)?", "in lower case: repositories are"),
]
Name = Annotated[str, _form("[a-z0-9]+([._-][a-z0-9]+)*", "lower case letters, digits, . _ -")]
Tag = Annotated[str, _form("[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}", "an image tag")]
Text = Annotated[str, _form(r"(?s).*\S.*", "some text")]
Folder = Annotated[str, _form(r"/[^\0]*[^/\0]", "an absolute folder without a slash at its end")]
Link = Annotated[str, _form(r"https?://\S+", "an http or https address")]
Relative = Annotated[
    str, _form(r"(?!/)(?!.*(^|/)\.\.(/|$)).*[^/]", "a path below the folder, without ..")
]
Variable = Annotated[str, _form("[A-Za-z_][A-Za-z0-9_]*", "a name of letters, digits and _")]
Line = Annotated[str, _form(r"[^\n\0]*", "one line")]
Label = Annotated[
    str, _form(r"(?!bringup\.)\S+", "a name without spaces; those below bringup. are its own")
]
Provided = Annotated[str, _form("nvcc|flashinfer", "nvcc or flashinfer: rules know no other")]
Python = Annotated[str, _form(r"3\.\d+", "a Python version such as 3.12")]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class BaseWords(_Strict):
    reference: Reference
    digest: Digest | None = None
    packages: Relative | None = None  # file of name==version lines, recorded by image.pin


class EngineWords(_Strict):
    name: Name
    version: str = ""
    path: Folder


class PatchWords(_Strict):
    overlay: Relative | None = None
    diff: Relative | None = None
    onto: Folder
    reason: Text
    link: Link
    replaces: dict[Relative, Sum]


class ImageWords(_Strict):
    """The words of an `image.yml`."""

    schema_: Annotated[Literal["bringup.image/1"], Field(alias="schema")]
    name: Name
    tag: Tag
    base: BaseWords
    engine: EngineWords
    packages: list[Text] = []
    no_deps: list[Text] = []
    constraints: Relative | None = None
    patches: list[PatchWords] = []
    labels: dict[Label, Line] = {}
    provides: dict[Provided, Line] = {}
    gate: list[dict[str, object]] = []
    arguments: dict[Variable, Line] = {}
    python: Python = "3.12"
    platforms: list[str] = ["manylinux_2_28_x86_64", "manylinux2014_x86_64"]


_SHAPES = {
    "dict_type": "should be keys with values",
    "model_type": "should be keys with values",
    "list_type": "should be a list, one - line each",
    "string_type": "should be text: put it in quotes",
}


def plainly(kind: str, message: str, path: yaml_marks.Path, given: object = "") -> str:
    """Say a schema fault as a person would. `given` is what stands there."""
    if kind in _SHAPES:
        is_number = isinstance(given, bool | int)
        held = f" ('{given}')" if kind == "string_type" and is_number else ""
        return "is empty" if given is None else _SHAPES[kind] + held
    if kind == "literal_error":
        return f"should be {message.partition('should be ')[2]}, not {given!r}"
    if kind == "extra_forbidden":
        known = [field.alias or name for name, field in _model_at(path).model_fields.items()]
        return f"is not a key here{did_you_mean(str(path[-1]), known)}"
    if kind == "missing":
        return "is missing"
    if kind == "value_error":
        return message.removeprefix("Value error, ")
    return message[:1].lower() + message[1:]


def _model_at(path: yaml_marks.Path) -> type[BaseModel]:
    at: dict[str, type[BaseModel]] = {
        "base": BaseWords,
        "engine": EngineWords,
        "patches": PatchWords,
    }
    return at.get(str(path[0]), ImageWords) if len(path) > 1 else ImageWords
