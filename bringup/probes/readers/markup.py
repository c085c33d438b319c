"""XML as tools print it, read leniently: cut off, with stray bytes or unescaped names.

Python's HTML tokenizer is used because it never raises and expands no entity definitions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser


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


class _Builder(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("")
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(element)
        if len(self.open) < 40:  # garbage may nest without end
            self.open.append(element)

    def handle_endtag(self, tag: str) -> None:
        if not any(element.tag == tag for element in self.open[1:]):
            return
        while self.open[-1].tag != tag:
            self.open.pop()
        self.open.pop().closed = True

    def handle_data(self, data: str) -> None:
        self.open[-1].text += data


def parse(text: str) -> Element:
    """Return the root above all elements of a text. Elements that were cut off are not `closed`."""
    builder = _Builder()
    builder.feed(text)
    return builder.root
