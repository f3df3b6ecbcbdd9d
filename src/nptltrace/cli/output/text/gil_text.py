"""Holds of the GIL and waits for it, as text: by thread, and by line below each thread."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from nptltrace._units import duration
from nptltrace.cli.output.text.table import duration_or_dash

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nptltrace.analysis.gil import GilLine

__all__ = ["lines"]

_ROW = "{:<40}{:>11}{:>8}{:>8}{:>15}{:>8}{:>11}{:>11}"
_UNKNOWN = "not known where"


def lines(usage: Sequence[GilLine], *, name: str, top: int | None) -> Iterator[str]:
    """Yield the lines of the report.

    Args:
        usage: Holds and waits of each thread at each line, sorted by process, GIL and thread.
        name: The traces.
        top: Number of lines of a thread; None for all.
    """
    yield name
    if not usage:
        yield (
            "  nothing of a GIL: no CPython 3.8 to 3.15 was recorded at level 2, or it had one "
            "thread that never gave it up"
        )
        return
    for (pid, gil), of_gil in groupby(usage, key=lambda line: (line.pid, line.gil)):
        threads = [list(rows) for _, rows in groupby(of_gil, key=lambda line: line.tid)]
        threads.sort(key=lambda rows: -sum(row.hold_ns for row in rows))
        held = sum(row.share for rows in threads for row in rows)
        yield f"  process {pid}: the {gil} was held for {100 * held:.1f}% of the time"
        yield ""
        yield _ROW.format(
            "threads, and where they were", "held", "share", "times", "others waited", "waits",
            "waited", "longest",
        )  # fmt: skip
        for rows in threads:
            yield from _row(f"{rows[0].tid} {rows[0].thread_name}".rstrip(), rows)
            rows.sort(key=lambda row: -max(row.wait_caused_ns, row.wait_ns))
            for row in rows[:top]:
                yield from _row(f"  {row.site or _UNKNOWN}", [row])
            if rows[top or len(rows) :]:
                yield f"    {len(rows[top or 0 :])} more (-n 0 shows all)"


def _row(what: str, rows: Sequence[GilLine]) -> Iterator[str]:
    caused, waited = sum(row.wait_caused_ns for row in rows), sum(row.wait_ns for row in rows)
    held, waits = sum(row.hold_ns for row in rows), sum(row.waits for row in rows)
    numbers = _ROW.format(
        "", duration(held), f"{100 * sum(row.share for row in rows):.1f}%",
        f"{sum(row.holds for row in rows):,}", duration_or_dash(caused),
        f"{waits:,}", duration(waited) if waits else "-",
        duration(max(row.wait_max_ns for row in rows)) if waits else "-",
    )[40:]  # fmt: skip
    what = f"  {what}"
    if len(what) < 40:  # noqa: PLR2004 -- the width in _ROW
        yield f"{what:<40}{numbers}"
    else:
        yield what
        yield f"{'':40}{numbers}"
