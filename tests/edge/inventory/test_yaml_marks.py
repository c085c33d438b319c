"""YAML is read as people mean it, or not at all."""

from __future__ import annotations

import pytest

from bringup.edge import yaml_marks, yaml_scalars


def troubles(text: str | bytes) -> list[str]:
    content = text.encode() if isinstance(text, str) else text
    return [str(problem) for problem in yaml_marks.read(content, "f.yml").problems]


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ("", None),
        ("~", None),
        ("null", None),
        ("true", True),
        ("False", False),
        ("0", 0),
        ("-5", -5),
        ("22", 22),
        ("0.90", 0.9),
        (".5", 0.5),
        ("1.5e3", 1500.0),
        ("1.2.3", "1.2.3"),
        ("2026-01-01", "2026-01-01"),
        ("b300-[04,07]", "b300-[04,07]"),
        ("192.0.2.4", "192.0.2.4"),
        ("fe80::1", "fe80::1"),
        ("SHA256:abc", "SHA256:abc"),
        ("nope", "nope"),
    ],
)
def test_a_bare_word_is_what_it_looks_like(raw: str, value: object) -> None:
    found, surprise = yaml_scalars.resolve(raw)
    assert (found, type(found), surprise) == (value, type(value), "")


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        *((word, "is a word to some") for word in ("yes", "No", "on", "OFF", "y", "N")),
        *((word, "is octal to some") for word in ("022", "0755", "-01", "007", "04")),
        *((word, "counts in sixties") for word in ("12:30", "1:2:3", "190:20:30", "22:22")),
        *((word, "is a number to some") for word in (
            "0x1F", "0b11", "0o17", "1_000", "1e5", ".inf", "-.inf", ".nan", "12345678901234567890",
        )),
    ],
)  # fmt: skip
def test_a_bare_word_that_readers_disagree_on_is_refused(raw: str, why: str) -> None:
    assert yaml_scalars.resolve(raw)[1].startswith(f"{raw} {why}")
    assert f"quote it ('{raw}')" in yaml_scalars.resolve(raw)[1]


@pytest.mark.parametrize("raw", ["no", "022", "12:30", "1.10", "5", "true"])
@pytest.mark.parametrize("quote", ["'", '"'])
def test_quotes_make_it_text(raw: str, quote: str) -> None:
    document = yaml_marks.read(f"a: {quote}{raw}{quote}\n".encode(), "f.yml")
    assert (document.data, document.problems) == ({"a": raw}, ())


@pytest.mark.parametrize("key", ["no", "022", "12:30", "5"])
def test_a_key_is_a_word_whatever_it_looks_like(key: str) -> None:
    document = yaml_marks.read(f"{key}: x\n".encode(), "f.yml")
    assert (document.data, document.problems) == ({key: "x"}, ())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a:\n\tb: 1\n", "f.yml:2: has a tab where YAML needs spaces"),
        (b"a: 1\nb: \xff\n", "f.yml:2: is not UTF-8: byte 0xff is out of place"),
        (b"\xef\xbb\xbfa: 1\n", "f.yml:1: starts with a byte order mark: save it as UTF-8 without "
         "one"),
        (b"\xff\xfea\x00", "f.yml:1: is UTF-16: save it as UTF-8"),
        ("a: 1\nb: 2\r\n", "f.yml:2: has Windows line ends (CR LF): convert it, as with "
         "sed -i 's/\\r$//' FILE"),
        ("a: 1\nb: \x00\n", "f.yml:2: holds the control character U+0000"),
        ("# a\u2028b\na: 1\n", "f.yml:1: holds the control character U+2028"),
        ('a: "\\0"\n', "f.yml:1: a: holds the control character U+0000"),
        ("--- \na: 1\n---\nb: 1\n", "f.yml:3: holds a second document (---): keep one"),
        ("? [a]\n: 1\n", "f.yml:1: a key should be one word: quote it if it holds [, { or *"),
        ("[" * 500, "f.yml:1: is nested more than 24 levels deep"),
        ("a: 1\nb: 2\na: 3\n", "f.yml:3: a: is given twice, first on line 1"),
        ("x:\n  a: {p: 1}\n  a: {q: [1]}\n", "f.yml:3: x/a: is given twice, first on line 2"),
        ("a: !!python/object/apply:os.system [x]\n",
         "f.yml:1: a: tag !!python/object/apply:os.system is not read; write a plain value"),
        ("a: !!str 5\n", "f.yml:1: a: tag !!str is not read; write a plain value"),
    ],
)  # fmt: skip
def test_what_is_no_plain_yaml_is_told(text: str | bytes, message: str) -> None:
    assert troubles(text) == [message]


@pytest.mark.parametrize(
    ("text", "line", "hint"),
    [
        ("a: [1\nb: 2\n", 2, "(begun on line 1)"),
        ("a: b: c\n", 1, "'a: b: c'"),
        ("hosts: @prefill\n", 1, "quote a value that begins with @"),
        ("hosts: *\n", 1, "quote a value that begins with @"),
        ("hosts: [b300-[04,07], x]\n", 1, "quote host patterns within [ ] or { }"),
    ],
)
def test_broken_syntax_is_told_with_what_mends_it(text: str, line: int, hint: str) -> None:
    (message,) = troubles(text)
    assert message.startswith(f"f.yml:{line}: is not YAML: ")
    assert hint in message


def test_an_alias_bomb_is_refused_before_it_grows() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)]
    messages = troubles("\n".join(lines))
    assert len(messages) == 30 + 29 * 9
    assert messages[1] == "f.yml:2: a1: &a1: anchors and aliases are not read; use a group"


def test_a_huge_file_is_refused() -> None:
    assert troubles(b"#" * 2_000_000) == ["f.yml: is 2000000 bytes long; at most 1048576 are read"]


def test_every_value_knows_its_line() -> None:
    document = yaml_marks.read(b"a:\n  b:\n    - x\n    - {c: 1}\nd: 1.10\n", "f.yml")
    paths = {(): 1, ("a",): 1, ("a", "b"): 2, ("a", "b", 1): 4, ("a", "b", 1, "c"): 4, ("d",): 5}
    assert {path: document.line(path) for path in paths} == paths
    assert document.line(("a", "nowhere")) == 1
    assert document.marks[("d",)].raw == "1.10"
