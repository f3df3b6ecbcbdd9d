"""The language of `ptt diff --fail-on`, and its evaluation.

    EXPR   = TERM { "," TERM }
    TERM   = METRIC ( ">" | "<" ) AMOUNT
    METRIC = "wait" | "held" | "wake" | "waits" | "idle" | "join" | "timeout"
           | "cancelled" | "unknown" | "gil" | "hold" | "used" | "holds" | "caused" | "elapsed"
    AMOUNT = NUMBER "%" | DURATION (of times) | NUMBER (of counts)

`>` holds if a metric grew by more than AMOUNT, `<` if it shrank by more.
"""

from __future__ import annotations

import argparse
import re
from math import isnan
from typing import TYPE_CHECKING

from nptltrace._dataclasses import dataclass
from nptltrace.cli.options import duration_ns
from nptltrace.errors import UsageError

if TYPE_CHECKING:
    from nptltrace.analysis.report.diff import Change, Difference, Row
    from nptltrace.analysis.report.metrics import Metric

__all__ = ["Term", "failures", "terms"]

_TERM = re.compile(r"(?P<metric>[a-z]+)\s*(?P<sign>[<>])\s*(?P<amount>.+)")
_PERCENT = re.compile(r"\d+(?:\.\d+)?\s*%")
# A change below this share of the total cannot fail: it is not worth a red build.
_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class Term:
    """A condition that makes a difference fail.

    Attributes:
        text: The text of the user.
        metric: The metric.
        grows: The metric must not grow; otherwise it must not shrink.
        amount: The greatest allowed change.
        percent: `amount` is in per cent; otherwise in ns, or a count.
    """

    text: str
    metric: Metric
    grows: bool
    amount: float
    percent: bool

    def exceeded(self, change: Change) -> bool:
        """Return whether the difference of the means is larger than allowed."""
        if not self.percent:
            difference = change.difference
        elif change.percent is None:
            difference = float("inf") if change.difference else 0.0
        else:
            difference = change.percent
        return (difference if self.grows else -difference) > self.amount


def terms(text: str) -> list[Term]:
    """Parse the terms of an expression; for `type=` of an option."""
    return [_term(part.strip()) for part in text.split(",")]


def _term(text: str) -> Term:
    from nptltrace.analysis.report.metrics import METRICS

    metrics = {metric.word: metric for metric in METRICS}
    match = _TERM.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form wait>10%")
    metric = metrics.get(match["metric"])
    if metric is None:
        known = ", ".join(metrics)
        raise argparse.ArgumentTypeError(f"no metric {match['metric']!r}: there are {known}")
    amount = match["amount"].strip()
    percent = _PERCENT.fullmatch(amount) is not None
    if percent:
        value = float(amount.rstrip("% "))
    elif metric.is_time:
        value = float(duration_ns(amount))
    elif amount.isascii() and amount.isdigit():
        value = float(amount)
    else:
        raise argparse.ArgumentTypeError(f"{amount!r} is neither a number nor a percentage")
    return Term(text, metric, match["sign"] == ">", value, percent)


def _check_known(difference: Difference, term: Term) -> None:
    change = difference.total.changes[term.metric.name]
    runs = (*difference.before, *difference.after)
    for run, value in zip(runs, (*change.before, *change.after), strict=True):
        if isnan(value):
            raise UsageError(
                f"{term.text}: the trace of {run.name} does not tell, to 1 %, how long holders of "
                "locks waited for a processor: record it with --sched auto or perf, on a machine "
                "where ptt stat shows such readings"
            )


def failures(difference: Difference, wanted: list[Term]) -> list[tuple[Term, Row]]:
    """Return the terms that hold, and their rows.

    With enough runs, a change must be statistically sure. With fewer runs, all new runs must lie on
    the same side of all baseline runs.

    Raises:
        UsageError: A run has no value of a metric.
    """
    failed = []
    for term in wanted:
        _check_known(difference, term)
        for row in (difference.total, *difference.rows):
            change = row.changes[term.metric.name]
            if not change.known or change.share < _SHARE or not term.exceeded(change):
                continue
            if difference.verdict(change) == "sure" if difference.enough else change.apart:
                failed.append((term, row))
    return failed
