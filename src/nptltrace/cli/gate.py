"""The language of `ptt diff --fail-on`, and whether a difference passes.

    EXPR   = TERM { "," TERM }
    TERM   = METRIC ( ">" | "<" ) AMOUNT
    METRIC = "wait" | "held" | "wake" | "waits" | "idle" | "join" | "timeout"
           | "cancelled" | "unknown" | "gil" | "hold" | "used" | "holds" | "caused" | "elapsed"
    AMOUNT = NUMBER "%" | DURATION (of times) | NUMBER (of counts)

`>` asks whether a metric grew by more than that, `<` whether it shrank by more.
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
# What is less than this part of everything cannot fail: it is not worth a red build.
_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class Term:
    """One condition under which a difference fails.

    Attributes:
        text: As it was written.
        metric: What must not change.
        grows: Whether it must not grow; else it must not shrink.
        amount: By how much it may.
        percent: Whether that is in per cent; else in ns or as a number.
    """

    text: str
    metric: Metric
    grows: bool
    amount: float
    percent: bool

    def exceeded(self, change: Change) -> bool:
        """Return whether the means differ by more than they may."""
        if not self.percent:
            difference = change.difference
        elif change.percent is None:
            difference = float("inf") if change.difference else 0.0
        else:
            difference = change.percent
        return (difference if self.grows else -difference) > self.amount


def terms(text: str) -> list[Term]:
    """Return the terms of an expression; meant as `type=` of an option."""
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


def _check_known(found: Difference, term: Term) -> None:
    change = found.total.changes[term.metric.name]
    runs = (*found.before, *found.after)
    for run, value in zip(runs, (*change.before, *change.after), strict=True):
        if isnan(value):
            raise UsageError(
                f"{term.text}: of {run.name} it is not known to a hundredth how long holders of "
                "locks could have run and had no processor: record it with --sched auto or perf, "
                "where ptt stat says that there are such readings"
            )


def failures(found: Difference, wanted: list[Term]) -> list[tuple[Term, Row]]:
    """Return which terms hold, and where.

    With runs enough to judge, a change must be sure; with fewer, every run after must differ from
    every run before in that direction.

    Raises:
        UsageError: Of some run it is not known.
    """
    failed = []
    for term in wanted:
        _check_known(found, term)
        for row in (found.total, *found.rows):
            change = row.changes[term.metric.name]
            if not change.known or change.share < _SHARE or not term.exceeded(change):
                continue
            if found.verdict(change) == "sure" if found.enough else change.apart:
                failed.append((term, row))
    return failed
