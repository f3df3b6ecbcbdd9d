"""The metrics of a run, with their names in JSON, in expressions and in reports."""

from __future__ import annotations

from nptltrace._dataclasses import dataclass

__all__ = ["METRICS", "Metric"]


@dataclass(frozen=True, slots=True)
class Metric:
    """A figure of a run that can be compared with other runs.

    Attributes:
        name: Name in JSON; the name of a duration ends with `_ns`.
        word: Name in expressions of users.
        text: Name in reports.
    """

    name: str
    word: str
    text: str

    @property
    def is_time(self) -> bool:
        """Whether the metric is a duration, in ns."""
        return self.name.endswith("_ns")


METRICS = (
    Metric("wait_ns", "wait", "contended"),
    Metric("held_ns", "held", "contended, while it was held"),
    Metric("wake_ns", "wake", "contended, until it was awake"),
    Metric("idle_ns", "idle", "idle"),
    Metric("join_ns", "join", "joining"),
    Metric("timeout_ns", "timeout", "timed out"),
    Metric("cancelled_ns", "cancelled", "given up"),
    Metric("unknown_ns", "unknown", "unknown"),
    Metric("gil_ns", "gil", "for the GIL"),
    Metric("hold_ns", "hold", "held"),
    Metric("used_ns", "used", "held, but for run delay"),
    Metric("wait_caused_ns", "caused", "kept others waiting"),
    Metric("waits", "waits", "contended waits"),
    Metric("holds", "holds", "holds"),
    Metric("elapsed_ns", "elapsed", "elapsed"),  # of a whole run only
)
