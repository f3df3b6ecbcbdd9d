"""Results in JUnit XML, which CI services show as test results."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from xml.sax.saxutils import escape, quoteattr

from nptltrace._escaping import for_terminal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from nptltrace.analysis.report.diff import Difference, Row
    from nptltrace.cli.gate import Term

__all__ = ["Case", "lines", "sentence", "suite"]


class Case(NamedTuple):
    """A test.

    Attributes:
        name: The name.
        kind: The kind of failure.
        failures: Why it failed, each on a line; empty if it passed.
        output: Further text, as lines.
        error: Why the result is not known; empty if it is known.
    """

    name: str
    kind: str
    failures: Sequence[str]
    output: Sequence[str] = ()
    error: str = ""


def sentence(term: Term, row: Row) -> str:
    """Return the row that a term held for, and its change, as a line."""
    change = row.changes[term.metric.name]
    percent = "new" if change.percent is None else f"{change.percent:+.0f} %"
    return f"{row.name}: {percent}"


def lines(
    difference: Difference, terms: Sequence[Term], failed: Sequence[tuple[Term, Row]]
) -> Iterator[str]:
    """Yield the document: each term is a test.

    Args:
        difference: The changes.
        terms: The conditions that make a difference fail.
        failed: The conditions that hold, and their rows.
    """
    runs = "; ".join(
        f"{side}: " + ", ".join(run.name for run in of)
        for side, of in (("before", difference.before), ("after", difference.after))
    )
    cases = [
        Case(term.text, term.metric.name, [sentence(t, row) for t, row in failed if t == term])
        for term in terms
    ]
    yield from suite("ptt diff", cases, {"runs": runs})


def suite(name: str, cases: Sequence[Case], properties: Mapping[str, str]) -> Iterator[str]:
    """Yield a document with one suite of tests.

    Args:
        name: The name of the suite.
        cases: The tests.
        properties: Facts about the suite.
    """
    red = len({case.name for case in cases if case.failures})
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    wrong = sum(bool(case.error) for case in cases)
    counts = f'tests="{len(cases)}" failures="{red}" errors="{wrong}"'
    yield f"<testsuites {counts}>"
    yield f'<testsuite name={_quoted(name)} {counts} skipped="0">'
    facts = (f"<property name={_quoted(k)} value={_quoted(v)}/>" for k, v in properties.items())
    yield f"<properties>{''.join(facts)}</properties>"
    for case in cases:
        begin = f"<testcase classname={_quoted(name)} name={_quoted(case.name)}"
        if not case.failures and not case.error:
            yield f"{begin}/>"
            continue
        yield f"{begin}>"
        if case.error:
            yield f'<error type="error" message={_quoted(case.error)}/>'
        if case.failures:
            yield f"<failure type={_quoted(case.kind)} message={_quoted(case.failures[0])}>"
            yield from (escape(for_terminal(failure)) for failure in case.failures)
            yield "</failure>"
        if case.output:
            yield "<system-out>"
            yield from (escape(for_terminal(line)) for line in case.output)
            yield "</system-out>"
        yield "</testcase>"
    yield "</testsuite>"
    yield "</testsuites>"


def _quoted(text: str) -> str:
    return quoteattr(for_terminal(text))
