"""The run that a trace is compared with."""

from __future__ import annotations

from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Literal

from nptltrace.analysis.report.measures import measure
from nptltrace.trace.symbols.alias import read_aliases
from nptltrace.trace.symbols.lookup import Symbols
from nptltrace.trace.traceset import Traceset

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence

    from nptltrace.analysis.report.measures import Run
    from nptltrace.trace.passed_over import PassedOver

__all__ = ["By", "Earlier"]

By = Literal["site", "object", "thread"]


class Earlier:
    """An earlier run; its sums are made once, each when it is first asked for.

    Args:
        path: Its trace.
        aliases: Alias files.
        directories: Where to look first for programs and debug files.
        passed_over: Which frames are no call sites; by default the built-in rule.

    Raises:
        TraceFormatError: It is not a trace.

    Attributes:
        name: The name of its trace.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        aliases: Sequence[str],
        directories: Sequence[str],
        passed_over: PassedOver | None,
    ) -> None:
        self.name = Path(path).resolve().name
        self._source = Traceset(path)
        self._symbols = Symbols(self._source, read_aliases(aliases), directories, passed_over)
        self._lock = Lock()
        self._runs: dict[By, Run] = {}

    def run(self, by: By, step: Callable[[], None]) -> Run:
        """Return what it did; see `measure`."""
        with self._lock:
            if by not in self._runs:
                self._runs[by] = measure(self._source, self._symbols, by=by, step=step)
            return self._runs[by]

    def remarks(self, later: Traceset) -> list[str]:
        """Return what a user should know of it, beside a later run."""
        of = f"{self.name}, the run before"
        found = [f"{of}: {text}" for text in (*self._source.remarks(), *self._source.damages())]
        levels = [source.traces[0].info.session.level for source in (self._source, later)]
        if all(levels) and levels[0] != levels[1]:
            both = " and ".join(levels)
            found.append(f"{of}: recorded at another level ({both}): what is not in both differs")
        return found
