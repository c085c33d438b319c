"""XML is read the same by the fast way and the lenient one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bringup.probes.readers import markup
from bringup.probes.readers.markup import Element

WHOLE = """<?xml version="1.0" encoding="iso-8859-1" ?>
<!DOCTYPE log SYSTEM "log.dtd">
<log>
\t<Driver>580.95.05</Driver>
\t<gpu id="0000:17:00.0"><name>B300 &amp; mor\u00e9</name><fan/></gpu>
</log>
"""


def shape(element: Element) -> object:
    own = (element.tag, element.attributes, element.closed, element.text.strip())
    return (*own, [shape(child) for child in element.children])


def test_a_whole_document_is_read_alike_both_ways() -> None:
    fast, slow = markup.parse(WHOLE), markup.lenient(WHOLE)
    assert shape(fast)[4] == shape(slow)[4]  # type: ignore[index]
    assert dict(fast.leaves())["log/gpu/name"] == "B300 & mor\u00e9"


@given(st.integers(0, len(WHOLE)))
def test_a_document_cut_anywhere_is_read_by_the_lenient_way(end: int) -> None:
    cut = WHOLE[:end]
    if end < len(WHOLE.rstrip()):
        assert shape(markup.parse(cut)) == shape(markup.lenient(cut))


def test_entities_are_never_expanded() -> None:
    bomb = '<!DOCTYPE a [<!ENTITY b "xxxx">]><a>&b;</a>'
    assert "xxxx" not in "".join(text for _, text in markup.parse(bomb).leaves())
