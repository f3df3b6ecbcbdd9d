"""The result of `ptt diff --fail-on` in JUnit XML, which CI services show as test results."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from nptltrace._escaping import for_terminal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nptltrace.analysis.report.diff import Difference, Row
    from nptltrace.cli.gate import Term

__all__ = ["lines", "sentence"]


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
    red = len({term.text for term, _ in failed})
    runs = "; ".join(
        f"{side}: " + ", ".join(run.name for run in of)
        for side, of in (("before", difference.before), ("after", difference.after))
    )
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    counts = f'tests="{len(terms)}" failures="{red}" errors="0"'
    yield f"<testsuites {counts}>"
    yield f'<testsuite name="ptt diff" {counts} skipped="0">'
    yield f'<properties><property name="runs" value={_quoted(runs)}/></properties>'
    for term in terms:
        case = f'<testcase classname="ptt diff" name={_quoted(term.text)}'
        rows = [sentence(each, row) for each, row in failed if each == term]
        if not rows:
            yield f"{case}/>"
            continue
        yield f"{case}><failure type={_quoted(term.metric.name)} message={_quoted(rows[0])}>"
        yield from (escape(for_terminal(row)) for row in rows)
        yield "</failure></testcase>"
    yield "</testsuite>"
    yield "</testsuites>"


def _quoted(text: str) -> str:
    return quoteattr(for_terminal(text))
