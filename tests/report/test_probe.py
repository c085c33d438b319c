"""A probe for people, machines, CI and sharing: the same findings, none of the secrets."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from io import StringIO
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from bringup.core.errors import Unreachable
from bringup.core.facts import Facts
from bringup.core.probed import Probed, document, fact_rows, folded, words, worst
from bringup.core.reading import Absent, Known, Unknown
from bringup.core.rules import Finding, Level, Status, Verdict
from bringup.probes.clock import Clock
from bringup.probes.gpu import Gpus
from bringup.probes.hca import InfiniBand
from bringup.report.junit import junit
from bringup.report.page import page
from bringup.report.probe import age, probe_view

TOKEN = "hf_abcdefghijklmnopqrstuvwx"


def finding(
    identity: str, level: Level, *evidence: str, status: Status = Status.FAIL, remedy: str = "do it"
) -> Finding:
    return Finding(
        identity, f"Title of {identity}", status, level, "", evidence, "it matters", remedy,
        "https://example.com/x",
    )  # fmt: skip


FACTS = Facts({
    Gpus: Known(Gpus("580.95.05", "13.0", ()), "driver 580.95.05, 8 GPUs"),
    InfiniBand: Absent("no folder /sys/class/infiniband"),
    Clock: Unknown("timed out"),
})  # fmt: skip
PASSED = finding("GPU-01", Level.OK, "8 GPUs", status=Status.PASS, remedy="")
SKIPPED = finding("FAB-01", Level.OK, "one GPU", status=Status.SKIP, remedy="")
UNASKED = finding("NET-04", Level.NOTE, "unknown: not asked", status=Status.UNKNOWN)
BLOCKED = finding("CTR-03", Level.BLOCK, f"HF_TOKEN={TOKEN} and <b>runc</b>")
WARNED = finding("IB-02", Level.WARN, "mlx5_4: DOWN")
SICK = Probed("b300-13", (WARNED, BLOCKED, PASSED, SKIPPED, UNASKED), FACTS, "b300")
WELL = Probed("b300-04", (PASSED, SKIPPED), FACTS, "b300")
LOST = Probed("b300-99", error=Unreachable("cannot reach b300-99", remedy="ping it"))


def shown(*probed: Probed, width: int = 80) -> str:
    out = StringIO()
    Console(file=out, width=width, highlight=False).print(probe_view(probed), crop=False)
    return out.getvalue()


def test_the_gravest_finding_comes_first() -> None:
    assert [each.finding.id for each in folded([SICK])] == ["CTR-03", "IB-02"]


def test_a_host_that_was_not_reached_is_unknown_never_ready() -> None:
    assert LOST.verdict is Verdict.UNKNOWN
    assert worst([WELL, LOST]) is Verdict.UNKNOWN
    assert worst([]) is Verdict.UNKNOWN


def test_people_read_verdict_evidence_reason_and_remedy() -> None:
    text = shown(SICK, WELL, LOST)
    assert text.startswith("blocked   b300-13")
    assert text.index("Title of CTR-03") < text.index("Title of IB-02")
    assert "saw       mlx5_4: DOWN" in text
    assert "because   it matters" in text
    assert "do        do it" in text
    assert "because   cannot reach b300-99" in text
    assert "2 passed, 2 do not apply, 1 not asked" in text
    assert "absent: no folder /sys/class/infiniband" in text
    assert "unknown: timed out" in text


@pytest.mark.parametrize(
    ("then", "said"),
    [
        ("2026-01-05T12:00:00Z", "3 days ago (2026-01-05T12:00:00Z)"),
        ("2026-01-08T10:59:00Z", "61 minutes ago (2026-01-08T10:59:00Z)"),
        ("2026-01-08T11:59:51Z", "9 seconds ago (2026-01-08T11:59:51Z)"),
        ("garbage", "garbage"),
        ("", ""),
    ],
)
def test_old_facts_show_their_age(then: str, said: str) -> None:
    assert age(then, "2026-01-08T12:00:00Z") == said


def test_a_host_that_was_not_reached_tells_when_it_was_last_seen() -> None:
    lost = replace(LOST, last_seen="2026-01-05T12:00:00Z")
    assert "last seen 2026-01-05T12:00:00Z" in shown(lost)
    assert document([lost], tool="t")["hosts"][0]["last_seen"] == "2026-01-05T12:00:00Z"


@pytest.mark.parametrize("width", [80, 100, 60])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    long = finding("OS-01", Level.WARN, "x" * 300, remedy="word " * 60)
    text = shown(Probed("h", (long,), FACTS), SICK, LOST, width=width)
    assert max(cell_len(line) for line in text.splitlines()) <= width


def test_a_hundred_hosts_fit_a_screen() -> None:
    hosts = [Probed(f"b300-{n:03}", (WARNED, PASSED), FACTS, "b300") for n in range(1, 101)]
    text = shown(*hosts)
    assert len(text.splitlines()) < 24
    assert "b300-[001-100]  100 hosts" in text
    assert "IB-02  all hosts" in text


def test_hosts_that_saw_different_things_are_named_and_counted() -> None:
    hosts = [
        Probed(f"b300-{n:02}", (finding("IB-02", Level.WARN, f"mlx5_{n}: DOWN"),))
        for n in range(1, 41)
    ]
    (each,) = folded(hosts)
    assert (len(each.hosts), len(each.variants)) == (40, 40)
    text = shown(*hosts)
    assert "on        b300-01" in text
    assert "and other lines on b300-[04-40]" in text


def test_facts_that_hosts_share_are_one_row() -> None:
    rows = {row.name: row for row in fact_rows([SICK, WELL])}
    assert rows["gpus"].hosts == ("b300-13", "b300-04")
    assert (rows["InfiniBand"].state, rows["clock"].state) == ("absent", "unknown")
    assert words("ContainerEngine") == "container engine"


def test_json_has_schema_verdicts_findings_and_facts() -> None:
    told = json.loads(json.dumps(document([SICK, LOST], tool="0.1.0", at="now")))
    assert (told["schema"], told["verdict"]) == ("bringup.probe/1", "blocked")
    sick, lost = told["hosts"]
    assert sick["findings"][1]["id"] == "CTR-03"
    assert sick["facts"]["InfiniBand"]["state"] == "absent"
    assert (lost["verdict"], lost["error"]["remedy"]) == ("unknown", "ping it")


def suites(*probed: Probed, strict: bool = False) -> dict[str, ET.Element]:
    return {s.attrib["name"]: s for s in ET.fromstring(junit(probed, strict=strict))}


def test_junit_tells_ci_what_blocks() -> None:
    sick = suites(SICK)["b300-13"]
    counted = {key: sick.attrib[key] for key in ("tests", "failures", "errors", "skipped")}
    assert counted == {"tests": "5", "failures": "1", "errors": "0", "skipped": "2"}
    assert suites(SICK, strict=True)["b300-13"].attrib["failures"] == "2"
    assert suites(LOST)["b300-99"].attrib["errors"] == "1"


@given(st.text(), st.text())
def test_junit_is_xml_whatever_a_host_prints(line: str, remedy: str) -> None:
    odd = finding("GPU-01", Level.BLOCK, line, "\0\x1b[4m", remedy=remedy)
    assert suites(Probed("h", (odd,)))["h"].attrib["failures"] == "1"


class Outside(HTMLParser):
    """Collects what a page would load or run, and whether its tags are closed."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag in ("script", "img", "link", "iframe", "object") or "src" in values:
            self.loads.append(tag)
        if tag == "a":
            self.links.append(values["href"] or "")
        if tag not in ("meta", "br", "link", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_stands_alone() -> None:
    text = page([SICK, WELL, LOST], tool="0.1.0", at="now")
    parser = Outside()
    parser.feed(text)
    assert (parser.loads, parser.open) == ([], [])
    assert set(parser.links) == {"https://example.com/x"}
    assert "url(" not in text
    assert "@import" not in text
    assert 'name="viewport"' in text
    assert "prefers-color-scheme: dark" in text


def test_what_a_host_prints_is_never_markup() -> None:
    text = page([SICK], tool="0.1.0")
    assert "<b>runc</b>" not in text
    assert "&lt;b&gt;runc&lt;/b&gt;" in text
    evil = finding("X-01", Level.WARN, "<script>alert(1)</script>", remedy='"><img src=x>')
    parser = Outside()
    parser.feed(page([Probed("<i>h</i>", (evil,))], tool="0.1.0"))
    assert parser.loads == []


def test_no_rendering_holds_a_secret() -> None:
    views = (
        shown(SICK), page([SICK], tool="0.1.0"), junit([SICK]),
        json.dumps(document([SICK], tool="0.1.0")),
    )  # fmt: skip
    assert not [view for view in views if TOKEN in view]


def test_a_masked_page_names_no_host_and_no_address() -> None:
    one = Probed("b300-13", (finding("NET-04", Level.WARN, "10.1.2.3:8998: timeout"),), FACTS)
    text = page([one], tool="0.1.0", masked=True)
    assert not re.search(r"b300-13|10\.1\.2\.3", text)
    assert "host-1" in text
    assert "192.0.2.2:8998: timeout" in text


def test_a_deployment_does_not_count_as_a_host() -> None:
    whole = Probed("kimi-k3", (PASSED,))
    assert "hosts" not in shown(WELL, whole).partition("findings")[0]
    assert "2 hosts" not in page([WELL, whole], tool="t", at="")
