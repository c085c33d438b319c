"""A probe as JUnit XML: a suite a host, a case a check, so that CI shows it as tests."""

from __future__ import annotations

import re
from collections.abc import Iterable
from xml.sax.saxutils import escape, quoteattr

from ..core.masking import without_secrets
from ..core.probed import Probed
from ..core.rules import Finding, Level, Status

_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 has no way to say, e.g. a NUL byte or a terminal escape."""


def junit(probed: Iterable[Probed], *, strict: bool = False) -> str:
    """Return JUnit XML. What blocks is a failure, warnings too when `strict`; unknown is skipped.

    A host that was not reached, and an unknown that the verdict hangs on, are errors.
    """
    suites = "".join(_suite(one, strict) for one in probed)
    head = '<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="bringup">\n'
    return f"{head}{suites}</testsuites>\n"


def _suite(one: Probed, strict: bool) -> str:
    cases = [_case(one.host, finding, strict) for finding in one.findings]
    if one.error is not None:
        inner = f"<error message={_quoted(one.error.message)}>{_text(one.error.remedy)}</error>"
        cases.append(
            f'    <testcase classname={_quoted(one.host)} name="reach">{inner}</testcase>\n'
        )
    body = "".join(cases)
    tallies = " ".join(
        f'{plural}="{body.count(f"<{tag}")}"'
        for plural, tag in (("failures", "failure "), ("errors", "error "), ("skipped", "skipped"))
    )
    head = f'  <testsuite name={_quoted(one.host)} tests="{len(cases)}" {tallies}>\n'
    return f"{head}{body}  </testsuite>\n"


def _case(host: str, finding: Finding, strict: bool) -> str:
    name = _quoted(f"{finding.id} {finding.title}")
    outcome = _outcome(finding, strict)
    start = f"    <testcase classname={_quoted(host)} name={name}"
    return f"{start}>{outcome}</testcase>\n" if outcome else f"{start}/>\n"


def _outcome(finding: Finding, strict: bool) -> str:
    lines = "\n".join((*finding.evidence, f"because {finding.reason}", f"do: {finding.remedy}"))
    message = _quoted("; ".join(finding.evidence[:2]) or finding.title)
    is_unknown = finding.status is Status.UNKNOWN
    if finding.level is Level.BLOCK:
        tag = "error" if is_unknown else "failure"
        return f"<{tag} message={message}>{_text(lines)}</{tag}>"
    if finding.status is Status.SKIP or is_unknown:
        return f"<skipped message={message}/>"
    if finding.level is Level.WARN and strict:
        return f"<failure message={message}>{_text(lines)}</failure>"
    return f"<system-out>{_text(lines)}</system-out>" if finding.level is Level.WARN else ""


def _text(text: str) -> str:
    return escape(_FORBIDDEN.sub("?", without_secrets(text)))


def _quoted(text: str) -> str:
    return quoteattr(_FORBIDDEN.sub("?", without_secrets(text)))
