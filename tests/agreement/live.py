"""Compares the figures of a live recording while its program does nothing.

Open waits last longer with each question. So two reports give the bounds of each figure: one report
before all other questions, and one report after them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from nptltrace.catalog.tables import WAIT_CLASSES
from tests.agreement.compare import FIGURES, Asked, Differences, ptt
from tests.agreement.viewed import Page

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

__all__ = ["compare_live"]


class _Between:
    """Two reports, which give the bounds of each figure between them."""

    def __init__(self, before: Any, after: Any, found: Differences) -> None:
        self._before, self._after, self._found = before, after, found

    def holds(self, what: str, given: Mapping[str, Any], names: Mapping[str, str]) -> None:
        """Expect some figures, each given with its name and its name in the report."""
        for name, of_report in names.items():
            least, most = self._before[of_report] or 0, self._after[of_report] or 0
            self._found.compared += 1
            if not least <= (given[name] or 0) <= most:
                self._found.found.append(f"{what} {name}: {given[name]} not {least} to {most}")


def compare_live(trace: Path) -> Differences:
    """Return the differences in a trace that still grows, while no event comes.

    Args:
        trace: Its directory; all events are on disk.
    """
    found = Differences()
    given: list[tuple[str, Mapping[str, Any], dict[str, str]]] = []

    def add(what: str, figures: Mapping[str, Any], names: dict[str, str] | None = None) -> None:
        given.append((what, figures, names or {name: name for name in FIGURES}))

    with Page.of(trace, follow=True) as page:
        page.until_read()
        before = json.loads(ptt("report", "--format", "json", trace))
        for by in ("thread", "site", "thread,object"):
            add(
                f"report --by {by}",
                json.loads(ptt("report", "--by", by, "--format", "json", trace)),
            )
        add("top", *_top(trace))
        asked = Asked(trace, None)
        add("SQL", *_tables(asked))
        asked.close()
        lengths = {"duration_ns": "elapsed_ns", "last_ns": "last_ns", "first_ns": "first_ns"}
        add("stat", json.loads(ptt("stat", "--format", "json", trace)), lengths)
        for by in ("object", "thread"):
            add(f"viewer, contention by {by}", page.ask("contention", by=by)["report"])
        add("viewer, statistics", page.ask("statistics")["figures"])
        for by in ("thread", "object"):
            add(f"viewer, rows of {by}s", *_rows(page, by))
        after = json.loads(ptt("report", "--format", "json", trace))
    between = _Between(before, after, found)
    for what, figures, names in given:
        between.holds(what, figures, names)
    return found


def _top(trace: Path) -> tuple[Mapping[str, Any], dict[str, str]]:
    top = json.loads(ptt("top", "-n", "1", "-i", "100ms", "--format", "json", trace))
    return top, {f"total_{name}": name for name in ("wait_ns", "held_ns", "wake_ns")}


def _tables(asked: Asked) -> tuple[Mapping[str, Any], dict[str, str]]:
    rows = asked.sql("select class, count(*) n, sum(dur_ns)::bigint ns from waits group by all")
    figures: dict[str, int] = {}
    for name in WAIT_CLASSES:
        [row] = [row for row in rows if row["class"] == name] or [{"n": 0, "ns": 0}]
        waits, ns = ("waits", "wait_ns") if name == "contended" else (f"{name}_waits", f"{name}_ns")
        figures |= {waits: row["n"], ns: row["ns"]}
    [row] = asked.sql("select count(*) n, coalesce(sum(dur_ns), 0)::bigint ns from holds")
    figures |= {"holds": row["n"], "hold_ns": row["ns"]}
    return figures, {name: name for name in figures}


def _rows(page: Page, by: str) -> tuple[Mapping[str, Any], dict[str, str]]:
    table = page.ask("rows", by=by)
    names = ["waits", "wait_ns", "idle_ns", "holds", "hold_ns"]
    total: Callable[[str], int] = lambda name: sum(table[name].to_pylist())  # noqa: E731
    return {name: total(name) for name in names}, {name: name for name in names}
