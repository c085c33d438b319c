"""XML as tools print it, read leniently: cut off, with stray bytes or unescaped names.

Whole and plain documents, the usual ones, are read by expat, four times as fast. For all others
Python's HTML tokenizer is used: it never raises and expands no entity definitions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from xml.parsers import expat


@dataclass(slots=True)
class Element:
    """One element: its tag in lower case, attributes, own text, children; was it closed?"""

    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: list[Element] = field(default_factory=list)
    text: str = ""
    closed: bool = False

    def all(self, tag: str) -> Iterator[Element]:
        """Yield every element of that tag below this one."""
        for child in self.children:
            if child.tag == tag:
                yield child
            yield from child.all(tag)

    def leaves(self, prefix: str = "") -> Iterator[tuple[str, str]]:
        """Yield path and text of every element that has no children."""
        for child in self.children:
            path = f"{prefix}{child.tag}"
            if child.children:
                yield from child.leaves(f"{path}/")
            elif child.closed:
                yield path, child.text.strip()


class _Tree:
    """Elements as they open and close; an end without a start is left out."""

    def __init__(self) -> None:
        self.root = Element("")
        self.open = [self.root]

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        element = Element(tag, attributes)
        self.open[-1].children.append(element)
        if len(self.open) < 40:  # garbage may nest without end
            self.open.append(element)

    def end(self, tag: str) -> None:
        if self.open[-1].tag != tag and tag not in (e.tag for e in self.open[1:]):
            return
        while self.open[-1].tag != tag:
            self.open.pop()
        self.open.pop().closed = True

    def data(self, text: str) -> None:
        self.open[-1].text += text


class _Tokenizer(HTMLParser):
    def __init__(self, tree: _Tree) -> None:
        super().__init__(convert_charrefs=True)
        self._tree = tree

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._tree.start(tag, {name: value or "" for name, value in attrs})

    def handle_endtag(self, tag: str) -> None:
        self._tree.end(tag)

    def handle_data(self, data: str) -> None:
        self._tree.data(data)


def parse(text: str) -> Element:
    """Return the root above all elements of a text. Elements that were cut off are not `closed`."""
    return _strict(text) or lenient(text)


def lenient(text: str) -> Element:
    """Return the root of any text, however broken."""
    tree = _Tree()
    _Tokenizer(tree).feed(text)
    return tree.root


def _strict(text: str) -> Element | None:
    """Return the root of a well-formed document that defines no entities, else None."""
    if "<!ENTITY" in text:
        return None
    tree, parser = _Tree(), expat.ParserCreate("utf-8")
    parser.buffer_text = True
    parser.StartElementHandler = lambda tag, attributes: tree.start(
        tag.lower(), {name.lower(): value for name, value in attributes.items()}
    )
    parser.EndElementHandler = lambda tag: tree.end(tag.lower())
    parser.CharacterDataHandler = tree.data
    try:
        parser.Parse(text.encode("utf-8", "replace"), True)
    except (expat.ExpatError, ValueError):
        return None
    return tree.root
