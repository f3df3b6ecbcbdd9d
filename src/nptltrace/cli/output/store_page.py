"""The page of a store, in HTML: how long runs waited, where, and the findings."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from nptltrace._units import date, duration, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nptltrace.analysis.vocabulary.document_types import FleetCheck, FleetReport, FleetRuns

__all__ = ["STYLE", "store_page"]

_RUNS = 200
_PLACES = 30
_BAR = 240
STYLE = """\
body { font: 14px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 80em; padding: 0 1em }
table { border-collapse: collapse; width: 100% }
th { text-align: left } td, th { padding: .2em .8em .2em 0; vertical-align: top }
tr + tr { border-top: 1px solid #8884 } td.n, th.n { text-align: right; white-space: nowrap }
rect { fill: #c33 } .error { color: #c33 }
@media (prefers-color-scheme: dark) { body { background: #181818; color: #ddd } a { color: #8bf } }
"""


def store_page(
    report: FleetReport, check: FleetCheck, runs: FleetRuns, names: Sequence[str]
) -> str:
    """Return the page.

    Args:
        report: The waits of the runs, by place.
        check: The findings in the runs.
        runs: The runs.
        names: The names of labels that can divide runs for a comparison.
    """
    return "\n".join(_lines(report, check, runs, names))


def _lines(
    report: FleetReport, check: FleetCheck, runs: FleetRuns, names: Sequence[str]
) -> Iterator[str]:
    store, by = escape(report["store"]), escape(report["by"])
    count = report["runs"]
    yield '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    yield f'<title>{store}</title><link rel="stylesheet" href="/store.css"></head><body>'
    yield f"<h1>{store}</h1>"
    yield (
        f"<p>{count:,} {plural(count, 'run')} waited {duration(report['wait_ns'])} contended. By "
        + ", ".join(f'<a href="/?by={escape(name)}">{escape(name)}</a>' for name in names)
        + ".</p>"
    )
    yield f"<h2>By {by}</h2>"
    most = max((group["run_mean_ns"] for group in report["groups"]), default=0)
    yield from _table(
        (by, "runs", "waiting of a run", ""),
        (
            (
                escape(group["value"]), f"{group['runs']:,}", duration(group["run_mean_ns"]),
                _bar(group["run_mean_ns"], most),
            )
            for group in report["groups"]
        ),
    )  # fmt: skip
    yield "<h2>Where they wait</h2>"
    places = report["places"][:_PLACES]
    yield from _table(
        ("place", "kind", "waits", "in all", "mean of a run", "90 % of runs", f"by {by}"),
        (
            (
                escape(place["site"] or place["place"]), escape(place["kind"]),
                f"{place['waits']:,}", duration(place["wait_ns"]), duration(place["run_mean_ns"]),
                duration(place["run_p90_ns"]),
                "<br>".join(
                    f"{escape(step['value_before'])} → {escape(step['value_after'])}: "
                    f"{duration(step['before_ns'])} → {duration(step['after_ns'])}"
                    for step in place["changes"]
                ),
            )
            for place in places
        ),
    )  # fmt: skip
    yield "<h2>Findings</h2>"
    yield from _table(
        ("severity", "finding", "runs", "hosts", "since", "last"),
        (
            (
                f'<span class="{escape(finding["severity"])}">{escape(finding["severity"])}</span>',
                f"{escape(finding['message'])} ({escape(finding['kind'])})", f"{finding['runs']:,}",
                f"{len(finding['hosts']):,}",
                _run(finding["first_run_id"], date(finding["first_unix_ns"])),
                _run(finding["last_run_id"], date(finding["last_unix_ns"])),
            )
            for finding in check["findings"]
        ),
    )  # fmt: skip
    yield "<h2>Last runs</h2>"
    yield from _table(
        ("run", "began", "host", "program", "events", "labels"),
        (
            (
                _run(run["run_id"], run["run_id"]), date(run["start_unix_ns"]),
                escape(run["host"]), escape(run["exe"]), f"{run['events']:,}",
                escape(" ".join(run["labels"])),
            )
            for run in runs["runs"][::-1][:_RUNS]
        ),
    )  # fmt: skip
    yield "</body></html>"


def _table(heads: Sequence[str], rows: Iterator[Sequence[str]]) -> Iterator[str]:
    """Yield a table; the cells are HTML."""
    yield "<table><tr>" + "".join(f"<th>{head}</th>" for head in heads) + "</tr>"
    empty = True
    for row in rows:
        empty = False
        yield "<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>"
    yield "</table>"
    if empty:
        yield "<p>None.</p>"


def _run(run_id: str, text: str) -> str:
    return f'<a href="/run/{escape(run_id)}">{escape(text)}</a>'


def _bar(value: int, most: int) -> str:
    width = round(_BAR * value / most) if most else 0
    return f'<svg width="{_BAR}" height="12"><rect width="{width}" height="12"/></svg>'
