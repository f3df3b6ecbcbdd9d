"""The report, the findings and the names of threads of a whole traceset, kept in files."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, Any, TypedDict

from nptltrace.analysis.checking.checker import Checker
from nptltrace.analysis.checking.lock_cycles import lock_cycles
from nptltrace.analysis.findings import findings_of
from nptltrace.analysis.report.contention import contention_of
from nptltrace.analysis.report.documents import findings_document, report_document
from nptltrace.analysis.vocabulary import document_types
from nptltrace.errors import PttError
from nptltrace.findings.kind import digest, kinds
from nptltrace.trace.threads import ThreadNames
from nptltrace.ui import protocol  # noqa: TC001 -- `fits` looks names up in this module
from nptltrace.ui.shapes import fits

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nptltrace._binding import libptttrack_sums
    from nptltrace.analysis.checking.lock_cycles import CycleLock, LockCycle
    from nptltrace.trace.symbols.lookup import Symbols
    from nptltrace.trace.traceset import Traceset
    from nptltrace.ui.folder import Folder

__all__ = ["CAUSES", "NAMED", "CyclicOrder", "FullReport", "find_bugs"]

# How many objects, sites and pairs get names at most.
NAMED = 2000
# How many causes of waits to list for each thread.
CAUSES = 500
_SLICES = 64


class CyclicOrder(TypedDict):
    """A lock order that is in a cycle.

    `held` and `wanted` each are the process, address and kind of a lock, and the time at which the
    order occurred.
    """

    held: list[int]
    wanted: list[int]
    suppressed: list[str]


class _KeptFindings(TypedDict):
    """The line with the findings in the kept file."""

    rules: str
    findings: protocol.Findings | None
    cycles: list[CyclicOrder]
    uncontended: str
    all_objects: int


class _KeptThreads(TypedDict):
    """The line with a `ThreadNames` in the kept file.

    A *turn* counts the threads that had the same id one after another. The rows of the lists are:

    - `named`: thread, turn; the name is at the same place in `names`
    - `begins`: thread, times at which threads with this id began
    - `pthreads`: process, `pthread_t`, time from which it is valid, thread
    - `creators`: thread, turn, thread of the creator, turn of the creator
    - `entries`: process, call site
    """

    named: list[list[int]]
    names: list[str]
    begins: list[list[int]]
    pthreads: list[list[int]]
    creators: list[list[int]]
    entries: list[list[int]]


class FullReport:
    """The report and the findings of the whole traceset, kept beside the levels of detail.

    Attributes:
        findings: The findings of `ptt check`, without rows; None before the search for bugs.
        cycles: The lock orders that are in cycles, if `findings` is there.
        uncontended: The message if nothing was contended, else the empty text.
        all_objects: How many objects there are, in the report or not.
    """

    def __init__(self) -> None:
        self.findings: protocol.Findings | None = None
        self.cycles: list[CyclicOrder] = []
        self.uncontended = ""
        self.all_objects = 0
        self._lock = Lock()
        self._report: document_types.Report | None = None
        # A kept report that nobody asked for yet. The report is long: parsing it takes time.
        self._kept: bytes | None = None

    @property
    def report(self) -> document_types.Report | None:
        """The report, call sites included; None before there is one.

        Raises:
            PttError: The kept report is damaged.
        """
        with self._lock:
            if self._report is None and self._kept is not None:
                report = None
                with suppress(ValueError, RecursionError):
                    report = json.loads(self._kept)
                if not fits(document_types.Report, report):
                    raise PttError("the report that is kept in .ptt-view is damaged: remove it")
                self._report = report
            return self._report

    def open(self, folder: Folder, identity: bytes, source: Traceset) -> bool:
        """Read the kept file; False if these traces have no kept file.

        Args:
            folder: The folder of the file.
            identity: Digest of the traces, the same as for `keep`.
            source: The opened traces. They learn the names of their threads.
        """
        fd = folder.read("analysis")
        if fd is None:
            return False
        with suppress(OSError, ValueError, RecursionError), os.fdopen(fd, "rb") as file:
            if file.read(32) != identity:
                return False
            kept = json.loads(file.readline())
            threads, report = file.readline(), file.read()
            names = _kept_threads(threads, source)
            if names is not None and fits(_KeptFindings, kept):
                source.names.take_over(names)
                # Findings by other rules are of no use here.
                self.findings = kept["findings"] if kept["rules"] == digest() else None
                self.cycles = kept["cycles"]
                self.uncontended = kept["uncontended"]
                self.all_objects = kept["all_objects"]
                self._kept = report
                return True
        return False

    def keep(self, folder: Folder, identity: bytes, source: Traceset) -> None:
        """Write the report, findings and names of threads to a file, if there is room."""
        try:
            with os.fdopen(folder.create("analysis"), "wb") as file:
                file.write(identity)
                kept: _KeptFindings = {
                    "rules": digest(), "findings": self.findings, "cycles": self.cycles,
                    "uncontended": self.uncontended, "all_objects": self.all_objects,
                }  # fmt: skip
                for text in (json.dumps(kept), _text_of_threads(source.names.known)):
                    file.write(text.encode("utf-8", "surrogatepass") + b"\n")
                file.write(json.dumps(self.report).encode("utf-8", "surrogatepass"))
        except OSError:
            folder.drop("analysis")
        else:
            folder.keep("analysis")

    def fill(self, model: libptttrack_sums.Model, source: Traceset, symbols: Symbols) -> None:
        """Make the report from a finished model."""
        contention = contention_of(model, source, symbols, named=NAMED, causes=CAUSES)
        self._report = report_document(contention, by="site")
        self.uncontended = contention.uncontended
        self.all_objects = contention.all_objects

    def find(self, source: Traceset, symbols: Symbols, step: Callable[[float], None]) -> None:
        """Look for bugs; arguments as of `find_bugs`."""
        self.findings, self.cycles = find_bugs(source, symbols, step)


def find_bugs(
    source: Traceset, symbols: Symbols, step: Callable[[float], None]
) -> tuple[protocol.Findings, list[CyclicOrder]]:
    """Return the findings of `ptt check`, without rows, and the lock orders that are in cycles.

    Args:
        source: The opened traces.
        symbols: Names addresses.
        step: Called often with the progress, 0 to 1. An exception of `step` ends the search.
    """
    checker = Checker(source)
    first, last = source.reader.key_range() or (0, 0)
    for n in range(1, _SLICES):
        step(n / _SLICES)
        key = first + (last - first) * n // _SLICES
        checker.read(source.reader.time_of_key(key))
    checker.read()
    checker.finish()
    source.names.learn()
    result = findings_of(source, symbols, checker)
    sure = [finding for finding in result.findings if not finding.suspect]
    document: Any = findings_document(sure, result.uncovered, result.futex_waits)
    document |= {"rows": [], "lost": result.lost, "partial": result.partial}
    document |= {"kinds": list(kinds()), "failures": result.failures}
    return document, _orders_of(lock_cycles(source, checker.check))


def _orders_of(cycles: Sequence[LockCycle]) -> list[CyclicOrder]:
    def place(lock: CycleLock, at_ns: int) -> list[int]:
        return [lock.process, lock.address, lock.kind, at_ns]

    return [
        {
            "held": place(held, wanted.ts_ns),
            "wanted": place(wanted, wanted.ts_ns),
            "suppressed": list(cycle.suppressed),
        }
        for cycle in cycles
        for held, wanted in zip((cycle.locks[-1], *cycle.locks), cycle.locks, strict=False)
    ]


def _text_of_threads(names: ThreadNames) -> str:
    """Return the names of threads as one line of JSON."""
    lists: _KeptThreads = {
        "named": [list(key) for key in names.names],
        "names": list(names.names.values()),
        "begins": [[thread, *times] for thread, times in names.begins.items()],
        "pthreads": [[*key, *had] for key, threads in names.pthreads.items() for had in threads],
        "creators": [[*key, *by] for key, by in names.creators.items()],
        "entries": [list(pair) for pair in names.entries],
    }
    return json.dumps(lists)


def _kept_threads(text: bytes, source: Traceset) -> ThreadNames | None:
    """Return the names of threads in a kept line; None if the line does not fit these traces.

    Raises:
        ValueError: The line is not JSON.
    """
    lists = json.loads(text)
    threads, processes = len(source.thread_ids), len(source.processes)
    limits = {
        "pthreads": (processes, 2**64, 2**63, threads),
        "named": (threads, 2**32),
        "creators": (threads, 2**32, threads, 2**32),
        "entries": (processes, 2**64),
    }
    if not (
        fits(_KeptThreads, lists)
        and len(lists["named"]) == len(lists["names"])
        and all(row and 0 <= row[0] < threads for row in lists["begins"])
        and all(
            len(row) == len(most) and all(0 <= n < end for n, end in zip(row, most, strict=True))
            for name, most in limits.items()
            for row in lists[name]
        )
    ):
        return None
    pthreads: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for process, at, since, thread in lists["pthreads"]:
        pthreads.setdefault((process, at), []).append((since, thread))
    return ThreadNames(
        begins={thread: times for thread, *times in lists["begins"]},
        names={
            (thread, turn): name
            for (thread, turn), name in zip(lists["named"], lists["names"], strict=True)
        },
        pthreads=pthreads,
        creators={(thread, turn): (by, whose) for thread, turn, by, whose in lists["creators"]},
        entries={(process, site) for process, site in lists["entries"]},
    )
