"""A capture replays to the same facts, without names of the place it came from."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bringup.core.capture import Capture, read_capture, replayed, written
from bringup.core.errors import UsageError
from bringup.core.facts import Facts, Probe, read
from bringup.core.reading import Known, Unknown
from bringup.core.script import Section, split

RAW = """\
Welcome to b300-04!
@@f00d begin x
|hostname b300-04
|10.1.2.3
@@f00d end x 0
@@f00d done
"""


class Text(str):
    """A fact for the test."""

    __slots__ = ()


class Other(Text):
    """Another fact."""

    __slots__ = ()


def parse(section: Section) -> Known[Text]:
    return Known(Text(section.text), section.first)


X = Probe("x", Text, "", parse)
Y = Probe("y", Other, "", parse)  # type: ignore[arg-type]


def capture(raw: str = RAW) -> str:
    return written(raw, nonce="f00d", tool="0.1.0", kind="b300", about="8 × B300")


def test_a_capture_tells_what_it_is_and_nothing_of_where() -> None:
    text = capture()
    assert text.startswith("# schema: bringup.capture/1\n# tool: 0.1.0\n# kind: b300\n")
    assert "b300-04" not in text
    assert "f00d" not in text
    assert "Welcome" not in text


def test_a_capture_replays_to_facts() -> None:
    got = read_capture(capture())
    assert (got.tool, got.kind, got.about) == ("0.1.0", "b300", "8 × B300")
    facts = replayed(got, [X, Y])
    assert facts[Text] == Known("hostname host-1\n192.0.2.2", "hostname host-1")
    assert facts[Other] == Unknown("not asked")


def test_a_raw_answer_replays_as_well() -> None:
    assert read_capture(RAW).answer == split(RAW, nonce="f00d")


def test_a_cut_capture_leaves_its_open_section_unknown() -> None:
    facts = replayed(read_capture(capture(RAW[: RAW.index("@@f00d end")])), [X])
    assert isinstance(facts[Text], Unknown)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# schema: bringup.capture/9\n@@capture begin x\n", "its schema is bringup.capture/9"),
        ("hello\n", "it holds no answer of a host"),
        ("", "it holds no answer of a host"),
    ],
)
def test_what_is_no_capture_is_refused(text: str, said: str) -> None:
    with pytest.raises(UsageError, match="cannot read FILE") as caught:
        read_capture(text, name="FILE")
    assert said in caught.value.message


@given(st.text())
def test_any_text_is_a_capture_or_a_usage_error(text: str) -> None:
    try:
        got = read_capture(text)
    except UsageError:
        return
    assert isinstance(got, Capture)


def test_masking_changes_no_structure() -> None:
    facts = read([X], split(RAW, nonce="f00d"))
    again = replayed(read_capture(capture()), [X])
    assert isinstance(facts, Facts)
    assert facts.readings.keys() == again.readings.keys()
