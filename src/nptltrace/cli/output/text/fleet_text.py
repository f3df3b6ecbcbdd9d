"""Output of `ptt fleet`: lines of text, and rows of CSV."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nptltrace._units import date, duration, plural
from nptltrace.cli.options import columns
from nptltrace.cli.output.text.folding import folded

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from nptltrace.analysis.vocabulary.document_types import (
        FleetChange,
        FleetCheck,
        FleetDiff,
        FleetReport,
        FleetRuns,
    )

__all__ = [
    "check", "check_rows", "diff", "diff_rows", "report", "report_rows", "run_rows", "runs",
]  # fmt: skip


def runs(document: FleetRuns, top: int | None) -> Iterator[str]:
    """Yield the runs, the latest first."""
    listed = document["runs"][::-1]
    yield f"{document['store']}: {len(listed)} {plural(len(listed), 'run')}"
    for run in listed[:top]:
        more = " ".join([*run["labels"], *(["(summary)"] if run["summary"] else [])])
        yield (
            f"  {date(run['start_unix_ns'])}  {run['run_id']}  {run['host']}  {run['exe']}  "
            f"{run['events']:,} {plural(run['events'], 'event')}  {more}"
        )
    yield from _more(len(listed), top)


def run_rows(document: FleetRuns) -> Iterator[Sequence[Any]]:
    """Yield the runs as rows of CSV."""
    names = ["run_id", "start_unix_ns", "added_unix_ns", "host", "exe", "events", "summary"]
    yield [*names, "labels"]
    for run in document["runs"]:
        row: Mapping[str, Any] = run
        yield [*(row[name] for name in names), " ".join(run["labels"])]


def report(document: FleetReport, top: int | None) -> Iterator[str]:
    """Yield the places where runs waited."""
    count = document["runs"]
    yield (
        f"{document['store']}: {count} {plural(count, 'run')} waited "
        f"{duration(document['wait_ns'])} contended"
    )
    for group in document["groups"]:
        yield (
            f"  {document['by']}={group['value']}: {group['runs']} {plural(group['runs'], 'run')}, "
            f"{duration(group['run_mean_ns'])} each"
        )
    places = document["places"]
    for place in places[:top]:
        yield ""
        yield f"{duration(place['wait_ns'])} at {place['site'] or place['place']} ({place['kind']})"
        yield (
            f"  {place['waits']:,} {plural(place['waits'], 'wait')} in {place['runs']} of {count} "
            f"{plural(count, 'run')}; {duration(place['held_ns'])} while it was held; the longest "
            f"took {duration(place['wait_max_ns'])}"
        )
        yield (
            f"  a run: mean {duration(place['run_mean_ns'])}, median "
            f"{duration(place['run_p50_ns'])}, 90 % {duration(place['run_p90_ns'])}, most "
            f"{duration(place['run_max_ns'])}"
        )
        for step in place["changes"]:
            yield (
                f"  from {document['by']}={step['value_before']} to {step['value_after']}: "
                f"{_changed(step)}"
            )
    yield from _more(len(places), top)


def report_rows(document: FleetReport) -> Iterator[Sequence[Any]]:
    """Yield the places as rows of CSV."""
    names = [
        "place", "site", "module", "kind", "runs", "waits", "wait_ns", "held_ns", "wait_max_ns",
        "run_mean_ns", "run_p50_ns", "run_p90_ns", "run_max_ns",
    ]  # fmt: skip
    yield names
    for place in document["places"]:
        row: Mapping[str, Any] = place
        yield [row[name] for name in names]


def check(document: FleetCheck, top: int | None) -> Iterator[str]:
    """Yield the findings."""
    findings, count = document["findings"], document["runs"]
    yield (
        f"{document['store']}: {len(findings)} {plural(len(findings), 'finding')} in {count} "
        f"{plural(count, 'run')}"
    )
    for finding in findings[:top]:
        yield ""
        yield f"{finding['severity']}: {finding['kind']}"
        yield from folded("  ", finding["message"], "", width=columns(), indent=2)
        hosts = finding["hosts"]
        yield (
            f"  in {finding['runs']} of {count} {plural(count, 'run')} on {len(hosts)} "
            f"{plural(len(hosts), 'host')}, first {date(finding['first_unix_ns'])}, last "
            f"{date(finding['last_unix_ns'])} (run {finding['last_run_id']})"
        )
        if any(finding["values"]):
            yield f"  {', '.join(finding['values'])}"
        for order in finding["orders"]:
            yield (
                f"  {order['held_name']} and then {order['wanted_name']}: {order['count']:,} "
                f"{plural(order['count'], 'time')} in {order['runs']} "
                f"{plural(order['runs'], 'run')}, as at {order['site']} of thread {order['tid']} "
                f"on {order['host']} (run {order['run_id']})"
            )
    yield from _more(len(findings), top)


def check_rows(document: FleetCheck) -> Iterator[Sequence[Any]]:
    """Yield the findings as rows of CSV."""
    names = [
        "kind", "severity", "message", "runs", "count", "first_unix_ns", "last_unix_ns",
        "first_run_id", "last_run_id",
    ]  # fmt: skip
    yield [*names, "hosts", "sites"]
    for finding in document["findings"]:
        row: Mapping[str, Any] = finding
        yield [*(row[name] for name in names), " ".join(row["hosts"]), "; ".join(row["sites"])]


def diff(document: FleetDiff, top: int | None) -> Iterator[str]:
    """Yield the changes."""
    before = document["runs_before"]
    yield (
        f"{document['store']}: {before} {plural(before, 'run')} before, {document['runs_after']} "
        "after; contended waiting of a run, on average"
    )
    yield f"  {_changed(document['total'])}"
    changed = [place for place in document["places"] if place["before_ns"] != place["after_ns"]]
    for place in changed[:top]:
        sure = place["chance"] <= 1 - document["confidence"]
        yield ""
        yield f"{place['site'] or place['place']} ({place['kind']})"
        yield f"  {_changed(place)}{'' if sure else '; it may be chance'}"
    yield from _more(len(changed), top)


def diff_rows(document: FleetDiff) -> Iterator[Sequence[Any]]:
    """Yield the places as rows of CSV."""
    names = [
        "place", "site", "module", "kind", "before_ns", "after_ns", "change_percent", "chance",
    ]  # fmt: skip
    yield names
    for place in document["places"]:
        row: Mapping[str, Any] = place
        yield [row[name] for name in names]


def _changed(change: FleetChange) -> str:
    percent = change["change_percent"]
    much = "" if percent is None else f" ({percent:+.0f} %)"
    return (
        f"{duration(change['before_ns'])} → {duration(change['after_ns'])}{much}, by chance with "
        f"probability {change['chance']:.2g}"
    )


def _more(count: int, top: int | None) -> Iterator[str]:
    if top is not None and count > top:
        yield ""
        yield f"{count - top:,} more (-n 0 shows all)"
