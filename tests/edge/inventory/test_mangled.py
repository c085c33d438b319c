"""Whatever stands in the files, reading them gives an inventory or an error for people."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from bringup.core.document import dump
from bringup.core.errors import ToolError
from bringup.edge import yaml_marks
from bringup.edge.inventory import load
from bringup.edge.names import Names, PatternError
from bringup.edge.schema import DeploymentEntry, HostsFile, KindEntry, keys_of
from bringup.engines.knobs import KNOBS
from tests.conftest import ROOT

FILES = ("hosts.yml", "kinds/b300.yml", "deployments/kimi-k3.yml", "deployments/qwen-1p1d.yml")
TEXTS = {name: (ROOT / "inventory" / name).read_bytes() for name in FILES}

KEYS = sorted(
    {key for model in (HostsFile, DeploymentEntry, KindEntry) for keys in keys_of(model)
     for key in keys} - {"*"} | {"b300-04", "b300-[04,07]", "n[1-3]", "a*", "all", "prefill"}
)  # fmt: skip
WORDS = [
    "no", "022", "12:30", "1.10", "b300-04", "b300-[04,07]", "@b300", "*", "a!a", "/x", "none",
    "me@b:22", "http://a:1", "SHA256:x", "decode", "", "~", "é", "\x00", "[", "{", "- ", "!x", "&a",
    "vllm", "x" * 300, "[1-9999999]", "a[1-2]b[3-4]", "me@[::1]:5", "\ud7ff", "%", "a@b@c", ":",
]  # fmt: skip

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.sampled_from(WORDS),
    st.text(max_size=8),
)
data = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=4), inner, max_size=5),
    ),
    max_leaves=20,
)


def gives_an_answer(files: dict[str, bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name, content in {**TEXTS, **files}.items():
            path = Path(folder) / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
        try:
            answer = dump(load(Path(folder), knobs=KNOBS, engines=("vllm", "dynamo.sglang")))
        except ToolError as error:
            answer = str(error)
    assert answer.encode()


@st.composite
def edits(draw: st.DrawFn) -> tuple[str, bytes]:
    """Return a shipped file with some pieces cut out, put in or moved."""
    name = draw(st.sampled_from(FILES))
    content = TEXTS[name]
    for _ in range(draw(st.integers(1, 6))):
        start = draw(st.integers(0, len(content)))
        length = draw(st.sampled_from((0, 1, 2, 10, 80)))
        piece = draw(st.sampled_from([word.encode() for word in (*WORDS, *KEYS)]) | st.binary(
            max_size=4))  # fmt: skip
        content = content[:start] + piece + content[start + length :]
    return name, content


@settings(max_examples=150, deadline=None)
@given(edits())
def test_a_file_edited_at_random_gives_an_answer(edit: tuple[str, bytes]) -> None:
    gives_an_answer(dict([edit]))


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(FILES), data)
def test_any_data_in_a_file_gives_an_answer(name: str, content: Any) -> None:  # Any: any data
    gives_an_answer({name: yaml.safe_dump(content, allow_unicode=True).encode()})


@st.composite
def hosts_files(draw: st.DrawFn) -> bytes:
    """Return a file with the right outline and any words in it."""
    word = st.sampled_from(WORDS) | st.sampled_from(KEYS)
    settings_ = st.dictionaries(st.sampled_from(KEYS), scalars | st.lists(word, max_size=3))
    group = st.fixed_dictionaries({}, optional={"hosts": st.lists(word, min_size=1, max_size=3),
                                                "groups": st.lists(word, max_size=2)})  # fmt: skip
    content = {
        "defaults": draw(settings_),
        "groups": draw(st.dictionaries(word, group, max_size=4)),
        "hosts": draw(st.dictionaries(word, st.none() | settings_, max_size=4)),
    }
    return yaml.safe_dump(content, allow_unicode=True).encode()


@settings(max_examples=150, deadline=None)
@given(hosts_files())
def test_any_words_in_a_hosts_file_give_an_answer(content: bytes) -> None:
    gives_an_answer({"hosts.yml": content})


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_any_bytes_give_a_document(content: bytes) -> None:
    document = yaml_marks.read(content, "f.yml")
    assert isinstance(document.problems, tuple)


@settings(max_examples=300, deadline=None)
@given(st.text("ab1-[],@!&^*?/%{}0. 9", max_size=12))
def test_any_pattern_names_hosts_or_is_refused(pattern: str) -> None:
    names = Names(("a", "a1", "b-9", "b-09"), {"a": ("a1",), "b": ()})
    try:
        found = names.match(pattern)
    except PatternError as error:
        found = ()
        message = str(error)
    else:
        message = "found"
    assert set(found) <= set(names.hosts)
    assert message
