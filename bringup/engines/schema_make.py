"""Make a schema from what an engine says of itself: its ``--help`` text, or its source text.

Pure. `edge.schema_source` reads wheels and folders; an image is asked for its help over SSH.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from .schema import Flag, Schema

_OPTION = re.compile(r"^ {2}(-\S.*)$")
_PART = re.compile(r"(--?[A-Za-z][\w.-]*)(?:[ =]?(.*))?$")
_CHOICES = re.compile(r"\{([^{}]*)\}")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{2,}")


def from_help(text: str, *, package: str, version: str) -> Schema:
    """Return the flags that an argparse help text lists. Variables are not in such a text.

    Raises ValueError when no option is found: the text is then no help.
    """
    flags: dict[str, Flag] = {}
    for head, body in _entries(text.replace("\r", "").splitlines()):
        for flag in _flags(head, "deprecated" in body.lower()):
            flags.setdefault(flag.name, flag)
    flags.pop("-h", None)
    flags.pop("--help", None)
    if not flags:
        raise ValueError("no option is in this text")
    return Schema(package, version, flags, None, "--help of an installed engine")


def _entries(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each option's head line and the help below it."""
    head, body = "", list[str]()
    for line in lines:
        match = _OPTION.match(line)
        if match is None:
            body.append(line)
            continue
        if head:
            yield head, " ".join(body)
        head, _, first = match[1].partition("  ")
        body = [first]
    if head:
        yield head, " ".join(body)


def _flags(head: str, deprecated: bool) -> list[Flag]:
    """Return all names of one option. A value shown for one of them holds for all."""
    plain = _CHOICES.sub(lambda found: "{" + found[1].replace(",", "\0") + "}", head)
    parts = [_PART.match(part.strip()) for part in plain.split(",")]
    found = [(part[1], (part[2] or "").replace("\0", ",")) for part in parts if part]
    value = next((text for _, text in found if text), "")
    choices = _CHOICES.fullmatch(value)
    words = tuple(choices[1].split(",")) if choices else ()
    return [Flag(name, bool(value), words, deprecated) for name, _ in found]


def flags_in(source: str) -> Iterator[Flag]:
    """Yield the flags that a Python source declares by literal names.

    Reads ``add_argument`` calls, and SGLang's dataclass fields of the form ``A[type, Arg(...)]``.
    Raises SyntaxError for a text that is no Python.
    """
    tree = ast.parse(source)
    lists = _constants(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _called(node) in ADDERS:
            yield from _added(node, lists)
        elif isinstance(node, ast.ClassDef) and node.name.endswith("Args"):
            fields = (part for part in node.body if isinstance(part, ast.AnnAssign))
            yield from (flag for field in fields for flag in _annotated(field, lists))


ADDERS = ("add_argument", "add_negatable_bool_argument")

Lists: TypeAlias = Mapping[str, ast.expr]


def _constants(tree: ast.Module) -> Lists:
    """Return the module's lists of words by name, for choices that are named elsewhere."""
    return {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _called(node: ast.expr) -> str:
    function = node.func if isinstance(node, ast.Call) else node
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _added(node: ast.Call, lists: Lists) -> Iterator[Flag]:
    options = {word.arg: word.value for word in node.keywords if word.arg}
    named = [options[key] for key in ("flag_name", "obsolete_flag") if key in options]
    words = [str(n.value) for n in (*node.args, *named) if isinstance(n, ast.Constant)]
    if _called(node) == "add_negatable_bool_argument":
        options["action"] = ast.Name("BooleanOptionalAction")
    yield from _declared([w for w in words if w.startswith("-")], options, lists, switch=False)


def _annotated(field: ast.AnnAssign, lists: Lists) -> Iterator[Flag]:
    """Read ``name: A[type, "help" or Arg(...), ...]``: the flag is the name with dashes."""
    note, target = field.annotation, field.target
    if not isinstance(note, ast.Subscript) or _called(note.value) not in ("A", "Annotated"):
        return
    parts = note.slice.elts if isinstance(note.slice, ast.Tuple) else [note.slice]
    arg = next((p for p in parts if isinstance(p, ast.Call) and _called(p) == "Arg"), None)
    options = {word.arg: word.value for word in arg.keywords if word.arg} if arg else {}
    if not isinstance(target, ast.Name) or "no_cli" in options:
        return
    kind = ast.unparse(parts[0])
    if "Literal[" in kind and "choices" not in options:
        options["choices"] = ast.List(
            [n for n in ast.walk(parts[0]) if isinstance(n, ast.Constant)]
        )
    names = [f"--{target.id.replace('_', '-')}", *_words(options.get("aliases"), lists)]
    if own := options.get("cli_name"):
        names[0] = str(getattr(own, "value", names[0]))
    switch = kind in ("bool", "Optional[bool]") and "nargs" not in options
    yield from _declared(names, options, lists, switch=switch)


def _declared(
    names: Iterable[str], options: Mapping[str, ast.expr], lists: Lists, *, switch: bool
) -> Iterator[Flag]:
    action = options.get("action")
    said = ast.unparse(action) if action else ""
    either = "BooleanOptional" in said
    bare = either or switch or "'store_" in said or "'version'" in said
    old = "eprecated" in said + "".join(map(ast.unparse, options.values()))
    for name in names:
        yield Flag(name, not bare, _words(options.get("choices"), lists), old)
        if either and name.startswith("--"):
            yield Flag(f"--no-{name[2:]}", takes_value=False, deprecated=old)


def _words(node: ast.expr | None, lists: Lists) -> tuple[str, ...]:
    """Return words that stand in a list, here or under a name of the same module."""
    if isinstance(node, ast.Name):
        node = lists.get(node.id)
    items = node.elts if isinstance(node, ast.List | ast.Tuple | ast.Set) else []
    return tuple(str(item.value) for item in items if isinstance(item, ast.Constant))


def variables_in(source: str) -> Iterator[str]:
    """Yield names of variables that a Python source reads from its environment."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield from _read_by_call(node)
        elif isinstance(node, ast.Subscript) and ast.unparse(node.value).endswith("environ"):
            yield from _names([node.slice])
        elif isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Dict):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if ast.unparse(target).endswith("environment_variables"):  # vLLM's table
                yield from _names(key for key in node.value.keys if key)
        elif isinstance(node, ast.ClassDef) and node.name == "Envs":  # SGLang's table
            yield from (name for part in node.body for name in _fields(part))


READERS = ("getenv", "environ.get", "get_bool_env_var", "get_int_env_var", "env_var", "setdefault")


def _read_by_call(node: ast.Call) -> Iterator[str]:
    if ast.unparse(node.func).endswith(READERS) and node.args:
        yield from _names(node.args[:1])
    yield from _names(word.value for word in node.keywords if word.arg == "env_var")


def _names(nodes: Iterable[ast.expr]) -> Iterator[str]:
    for node in nodes:
        text = node.value if isinstance(node, ast.Constant) else None
        if isinstance(text, str) and _VARIABLE.fullmatch(text):
            yield text


def _fields(part: ast.stmt) -> Iterator[str]:
    targets = part.targets if isinstance(part, ast.Assign) else []
    if isinstance(part, ast.AnnAssign):
        targets = [part.target]
    for target in targets:
        if isinstance(target, ast.Name) and _VARIABLE.fullmatch(target.id):
            yield target.id
