"""Differences between runs as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nptltrace._units import duration
from nptltrace.analysis.report.metrics import METRICS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nptltrace.analysis.report.diff import Change, Difference, Row
    from nptltrace.analysis.report.measures import Run
    from nptltrace.analysis.report.metrics import Metric

__all__ = ["lines"]

_VERDICTS = {"sure": "sure", "chance": "may be chance", "unknown": ""}
_MANIFOLD = 1000  # per cent; larger changes are printed as a factor
_SAME = "="
_MINOR = 0.001  # share of the total; smaller changes are not printed


def lines(difference: Difference, *, by: str, per: str, top: int | None) -> Iterator[str]:
    """Yield the lines of the text.

    Args:
        difference: The changes.
        by: The value of `--by`.
        per: The value of `--per`.
        top: Number of rows; None for all.
    """
    yield _runs("before", difference.before)
    yield _runs("after", difference.after)
    yield f"  {_certainty(difference)}"
    yield ""
    unit = "" if per == "run" else f" (per {per})"
    yield f"{by + unit:<34}{'before':>13}{'after':>13}{'change':>10}"
    yield from _row(difference, difference.total)
    shown = [row for row in difference.rows if any(_is_shown(row, m) for m in METRICS)]
    for row in shown[:top]:
        yield from _row(difference, row)
    more = len(shown) - len(shown[:top])
    if more:
        yield f"  {more:,} more (-n 0 shows all)"


def _runs(side: str, runs: list[Run]) -> str:
    names = ", ".join(run.name for run in runs)
    mean = duration(sum(run.elapsed_ns for run in runs) // len(runs))
    return f"{side + ':':<8}{names} ({f'{len(runs)} runs of {mean}' if len(runs) > 1 else mean})"


def _certainty(difference: Difference) -> str:
    """Return how well differences can be distinguished from chance."""
    n, m = len(difference.before), len(difference.after)
    if difference.enough:
        return (
            f"sure: with {difference.confidence:.0%} confidence, none of the changes marked sure "
            "is chance"
        )
    if min(n, m) == 1:
        return "one run does not show the spread: all changes may be chance (record 4 of each)"
    return (
        f"{n} and {m} runs are too few for {difference.confidence:.0%} confidence: they give "
        f"{1 - difference.least_chance:.0%} at most (record more)"
    )


def _is_shown(row: Row, metric: Metric) -> bool:
    """Return whether the text has a line for a metric of a row."""
    change = row.changes[metric.name]
    if not change.known or (not change.mean_before and not change.mean_after):
        return False
    return change.share >= _MINOR


def _row(difference: Difference, row: Row) -> Iterator[str]:
    shown = [metric for metric in METRICS if _is_shown(row, metric)]
    if not shown:
        return
    yield f"{row.label}{f', {row.kind}' if row.kind else ''}"
    yield from (f"    < {caller}" for caller in row.callers)
    for metric in shown:
        change = row.changes[metric.name]
        values = "".join(
            f"{_value(metric, v):>13}" for v in (change.mean_before, change.mean_after)
        )
        percent = _percent(change)
        verdict = "" if percent == _SAME else _VERDICTS[difference.verdict(change)]
        yield f"  {metric.text:<32}{values}{percent:>10}  {verdict}"


def _value(metric: Metric, value: float) -> str:
    if metric.is_time:
        return duration(round(value))
    return f"{value:,.0f}" if value == round(value) else f"{value:,.2f}"


def _percent(change: Change) -> str:
    if change.percent is None:
        return "new"
    if not change.mean_after:
        return "gone"
    if abs(change.percent) < 0.5:  # noqa: PLR2004 -- rounds to 0
        return _SAME
    if change.percent < _MANIFOLD:
        return f"{change.percent:+,.0f} %"
    return f"× {1 + change.percent / 100:,.0f}"
