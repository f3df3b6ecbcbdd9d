"""The contention of a traceset: waits by object, thread and call site, and their causes.

docs/explanation/waits.md has the rules for classes of waits and for blame.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nptltrace._binding import libptttrack_sums
from nptltrace.analysis.model import Counted, run_model
from nptltrace.analysis.objects import Users
from nptltrace.analysis.question_scope import Scope
from nptltrace.analysis.report.critical_path import critical_path
from nptltrace.analysis.report.figures import (
    Blame,
    Cause,
    Contention,
    Figures,
    Inside,
    ObjectFigures,
    OpenWait,
    PairFigures,
    SiteFigures,
    ThreadFigures,
)
from nptltrace.analysis.report.naming import NamedObject, Naming
from nptltrace.analysis.report.stacks.both_sides import WaitStacks
from nptltrace.catalog import SYS_CALLS
from nptltrace.catalog.tables import THREAD_STATES, WAIT_CLASSES

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from nptltrace.analysis.model import Window
    from nptltrace.analysis.report.stacks.both_sides import BothStacks
    from nptltrace.trace.symbols.lookup import Symbols
    from nptltrace.trace.traceset import Traceset

__all__ = ["contention", "contention_of"]

_NONE = 2**63 - 1  # time of a thread without events


def contention(
    source: Traceset,
    symbols: Symbols | None = None,
    *,
    window: Window | None = None,
    counted: Counted | None = None,
    named: int | None = None,
    causes: int | None = None,
    pairs: bool = False,
    stacks: str = "",
) -> Contention:
    """Return the contention of a traceset.

    Args:
        source: The opened traces.
        symbols: Names addresses; without them objects and sites are numbers.
        window: The part to look at.
        counted: The things to count.
        named: Number of objects, sites and pairs to report, the most waited for first; None for
            all.
        causes: Number of causes to report for each thread; None for all.
        pairs: Whether to add up by thread and object too. This takes longer.
        stacks: The entries with call stacks of their waits: `object`, `thread`, `site` or
            `thread,object`; empty for none. This takes longer.

    Raises:
        NativeError: Memory is out.
    """
    source.names.learn()
    flags = libptttrack_sums.PATH | (libptttrack_sums.PAIRS if pairs else 0)
    flags |= libptttrack_sums.ROWS if stacks else 0
    both = WaitStacks(stacks) if stacks else None
    model = run_model(
        source, flags, window=window, counted=counted, take=both.add if both else None
    )
    if both is not None:
        both.finish(model, source, symbols)
    return contention_of(
        model, source, symbols, counted=counted, named=named, causes=causes, pairs=pairs,
        stacks=both,
    )  # fmt: skip


def contention_of(
    model: libptttrack_sums.Model,
    source: Traceset,
    symbols: Symbols | None = None,
    *,
    counted: Counted | None = None,
    named: int | None = None,
    causes: int | None = None,
    pairs: bool = False,
    stacks: WaitStacks | None = None,
) -> Contention:
    """Return the contention of a finished model with the flag `PATH`; see `contention`."""
    report = _Report(
        model, source, symbols, counted=counted or Counted(), named=named, causes=causes,
        stacks=stacks,
    )  # fmt: skip
    return report.contention(pairs=pairs)


class _Report:
    """Reads the tables of a finished model."""

    def __init__(
        self, model: libptttrack_sums.Model, source: Traceset, symbols: Symbols | None, *,
        counted: Counted, named: int | None, causes: int | None, stacks: WaitStacks | None,
    ) -> None:  # fmt: skip
        self.model, self.source = model, source
        self.counted, self.named, self.most_causes, self.stacks = counted, named, causes, stacks
        self.chosen: frozenset[tuple[int, int]] | None = None
        if counted.threads is not None:
            self.chosen = frozenset(source.thread_ids[number] for number in counted.threads)
        self.threads = model.table("threads")
        self.threads["first_ns"][0] = _NONE  # row 0 is no thread
        self.objects = model.table("objects")
        self.sites = model.table("sites")
        self.histograms = model.table("histograms", copy=False)["counts"]
        self.names = Naming(source, symbols, self.threads, self.objects, self.sites)
        self.causes = self._by("causes", "ns")
        self.all_objects = self.waited_objects = 0

    def contention(self, *, pairs: bool) -> Contention:
        """Return the contention of a trace."""
        lived = self.threads[self.threads["first_ns"] != _NONE]
        total = _group(lived, np.zeros(len(lived), np.int64), 1)[0]
        rows = self.model.table("open")
        open_waits = [self._open_wait(row) for row in rows]
        return Contention(
            first_ns=int(lived["first_ns"].min()) if len(lived) > 0 else 0,
            last_ns=int(lived["last_ns"].max()) if len(lived) > 0 else 0,
            lost=max(self.model.lost, self.source.lost_events()),
            figures=self._figures(total, self._histogram(lived["histogram"])),
            objects=self._objects(),
            all_objects=self.all_objects,
            waited_objects=self.waited_objects,
            threads=self._lived(),
            sites=self._sites(),
            pairs=self._pairs() if pairs else [],
            open_waits=open_waits,
            deadlocks=[[open_waits[at] for at in cycle] for cycle in _cycles(rows)],
            path=critical_path(self.model, self.names),
            uncovered=self.source.uncovered(),
        )

    # ---- parts ----

    def _stacks_of(self, entries: str) -> Callable[..., list[BothStacks]]:
        """Return a function from the numbers of an entry to its call stacks, if any are wanted."""
        if self.stacks is None or self.stacks.by != entries:
            return lambda *_: []
        return self.stacks.finder()

    def _by(self, table: str, column: str) -> NDArray[Any]:
        """Return a table without its row 0, the greatest values of a column first."""
        rows = self.model.table(table)[1:]
        return rows[np.argsort(-rows[column].astype(np.int64), kind="stable")]

    def _top(self, rows: NDArray[Any], *columns: NDArray[Any]) -> NDArray[Any]:
        """Return the rows to report, in descending order of columns."""
        order = np.lexsort([-column.astype(np.int64) for column in reversed(columns)])
        return rows[order[: self.named]]

    def _figures(self, row: Any, histogram: NDArray[Any] | None) -> Figures:
        n, ns = row["wait_n"].tolist(), row["wait_ns"].tolist()
        p50 = p99 = None
        if histogram is not None and n[0]:
            most = int(row["wait_max"])
            p50, p99 = (
                libptttrack_sums.percentile(histogram, share, most) for share in (0.5, 0.99)
            )
        return Figures(
            waits=n[0],
            wait_ns=ns[0],
            held_ns=int(row["held_ns"]),
            wait_max_ns=int(row["wait_max"]),
            wait_p50_ns=p50,
            wait_p99_ns=p99,
            other_waits=dict(zip(WAIT_CLASSES[1:], n[1:], strict=True)),
            other_ns=dict(zip(WAIT_CLASSES[1:], ns[1:], strict=True)),
            holds=int(row["hold_n"]),
            hold_ns=int(row["hold_ns"]),
            hold_max_ns=int(row["hold_max"]),
        )

    def _histogram(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """Return the sum of some histograms; number 0 is an empty histogram."""
        numbers = numbers[numbers != 0]
        if not len(numbers):
            return np.zeros(libptttrack_sums.BUCKETS, np.uint64)
        return np.asarray(self.histograms[numbers].sum(axis=0, dtype=np.uint64))

    def _chosen_objects(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """Return the objects to count, of some used objects.

        Without a choice, all objects count. If threads or call sites are chosen, an object counts
        if it has waits or holds of the chosen threads or call sites.
        """
        if self.counted == Counted():
            return numbers
        rows = self.objects[numbers]
        counted = _used(rows)
        if self.counted.threads is None and self.counted.sites is None:
            columns = (rows[name] for name in ("process", "address", "first_ns", "kind"))
            counted |= Scope(counted=self.counted).has_objects(*columns)
        alike = self.names.first_alike(numbers)
        return numbers[np.isin(alike, alike[counted])]

    def _objects(self) -> list[ObjectFigures]:
        """Return the objects. Objects that are counted together are one entry."""
        numbers = np.flatnonzero((self.objects["kind"] != 1) & (self.objects["threads"] > 0))
        numbers = self._chosen_objects(numbers)
        first, group = np.unique(self.names.first_alike(numbers), return_inverse=True)
        first_numbers = numbers[first]
        rows = self.objects[numbers]
        sums = _group(rows, group, len(first))
        members = np.argsort(group, kind="stable")
        starts = np.searchsorted(group[members], np.arange(len(first) + 1))
        wait, hold = sums["wait_ns"], sums["hold_ns"]
        users = Users.of(self.objects, self.model.table("pairs", copy=False))
        threads = users.count(numbers, group, len(first))
        self.all_objects = len(first)
        self.waited_objects = int(np.count_nonzero(sums["wait_n"].any(axis=1)))
        order = self._top(np.arange(len(first)), wait[:, 0], wait.sum(axis=1), hold)
        chosen = np.where(np.isin(group, order), group, -1)
        group_of = np.full(len(self.objects), -1, np.int64)
        group_of[numbers] = chosen
        blamed = self._per_object("blames", "caused_ns", group_of)
        wakers = self._per_object("wakers", "ns", group_of)
        inside = self._inside(group_of)
        stacks = self._stacks_of("object")
        objects = []
        for at in order.tolist():
            which = members[starts[at] : starts[at + 1]]
            generations = rows[which]
            number = int(first_numbers[at])
            objects.append(
                ObjectFigures(
                    address=int(generations["address"][0]),
                    pid=self.names.pid(int(generations["process"][0])),
                    kind=self.names.kind(number),
                    name=self.names.object_name(number),
                    init_site=self.names.site(int(generations["init_site"][0])),
                    first_site=self.names.site(int(generations["first_site"][0])),
                    generations=len(generations),
                    threads=int(threads[at]),
                    max_waiters=int(generations["max_waiters"].max()),
                    wasted_signals=int(generations["wasted"].sum()),
                    figures=self._figures(sums[at], self._histogram(generations["histogram"])),
                    blamed=blamed.get(at, []),
                    wakers=wakers.get(at, []),
                    inside=inside.get(at, []),
                    stacks=stacks(*((number,) for number in numbers[which].tolist())),
                )
            )
        return objects

    def _per_object(
        self, table: str, column: str, group_of: NDArray[Any]
    ) -> dict[int, list[Blame]]:
        """Return the holders or wakers of each group of objects, the worst first.

        Args:
            table: `blames` or `wakers`.
            column: The column of the table to add up.
            group_of: The group of each object, -1 for none.
        """
        sums: dict[tuple[int, int, int, int], list[int]] = {}
        rows = self._by(table, column)
        rows = rows[(rows[column] > 0) & (group_of[rows["object"]] >= 0)]
        none = np.zeros(len(rows), np.uint64)
        counts = rows["n"] if table == "wakers" else none
        released = rows["released"] if table == "blames" else none
        for at, thread, site, gave, ns, n in zip(
            group_of[rows["object"]].tolist(), rows["thread"].tolist(), rows["site"].tolist(),
            released.tolist(), rows[column].tolist(), counts.tolist(), strict=True,
        ):  # fmt: skip
            both = sums.setdefault((at, thread, site, gave), [0, 0])
            both[0] += ns
            both[1] += n
        result: dict[int, list[Blame]] = {}
        for (at, thread, site, gave), (ns, n) in sorted(sums.items(), key=lambda item: -item[1][0]):
            name = self.names.thread(thread) if thread else None
            blame = Blame(name, self.names.site(site), ns, n, bool(gave))
            result.setdefault(at, []).append(blame)
        return result

    def _inside(self, group_of: NDArray[Any]) -> dict[int, list[Inside]]:
        """Return what the holders of each group of objects did, the greatest share first.

        Args:
            group_of: The group of each object, -1 for none.
        """
        rows = self._by("insides", "ns")
        rows = rows[group_of[rows["object"]] >= 0]
        sums: dict[tuple[int, int, int, int, int], int] = {}
        for at, state, call, site, wanted, ns in zip(
            group_of[rows["object"]].tolist(),
            *(rows[name].tolist() for name in ("state", "call", "site", "wanted", "ns")),
            strict=True,
        ):
            key = at, state, call, site, wanted
            sums[key] = sums.get(key, 0) + ns
        total: dict[int, int] = {}
        for (at, *_), ns in sums.items():
            total[at] = total.get(at, 0) + ns
        result: dict[int, list[Inside]] = {}
        for (at, state, call, site, wanted), ns in sorted(sums.items(), key=lambda item: -item[1]):
            what = Inside(
                what=THREAD_STATES[state],
                site=self.names.site(site),
                call=SYS_CALLS[call] if call else None,
                wanted=self._named(wanted) if wanted else None,
                waited_ns=ns,
                share=ns / total[at],
            )
            result.setdefault(at, []).append(what)
        return result

    def _named(self, row: int) -> NamedObject:
        names = self.names
        return NamedObject(names.kind(row), names.address(row), names.object_name(row))

    def _lived(self) -> list[ThreadFigures]:
        """Return the threads that lived, in the order of their first events."""
        causes: dict[int, list[Cause]] = {}
        for row in self._few_causes():
            causes.setdefault(int(row["thread"]), []).append(self._cause(row))
        lived = np.flatnonzero(self.threads["first_ns"] != _NONE)
        lived = lived[np.argsort(self.threads["first_ns"][lived], kind="stable")]
        stacks = self._stacks_of("thread")
        threads = []
        for number in lived.tolist():
            row = self.threads[number]
            if self.chosen is not None and (row["process"], row["tid"]) not in self.chosen:
                continue
            kinds = {
                libptttrack_sums.KINDS.get(k, ""): int(v) for k, v in enumerate(row["kind_ns"]) if v
            }
            threads.append(
                ThreadFigures(
                    thread=self.names.thread(number),
                    start_ns=int(row["first_ns"]),
                    end_ns=int(row["last_ns"]),
                    by_kind={("join" if k == "thread" else k): v for k, v in kinds.items()},
                    blocked_ns=int(row["blocked_ns"]),
                    wait_caused_ns=int(row["caused_ns"]),
                    buffer_ns=int(row["buffer_ns"]),
                    silent_ns=int(row["silent_ns"]),
                    cpu_ns=_known(row["cpu_ns"]),
                    ready_ns=_known(row["ready_ns"]),
                    figures=self._figures(row, self._histogram(row["histogram"].reshape(1))),
                    causes=causes.get(number, []),
                    stacks=stacks((number,)),
                )
            )
        return threads

    def _few_causes(self) -> NDArray[Any]:
        """Return the greatest causes of each thread, or all causes."""
        if self.most_causes is None:
            return self.causes
        order = np.argsort(self.causes["thread"], kind="stable")
        threads = self.causes["thread"][order]
        rank = np.arange(len(order)) - np.searchsorted(threads, threads)
        return np.asarray(self.causes[order[rank < self.most_causes]])

    def _cause(self, row: Any) -> Cause:
        cause = int(row["cause"])
        return Cause(
            address=self.names.address(int(row["object"])),
            kind=self.names.kind(int(row["object"])),
            name=self.names.object_name(int(row["object"])),
            site=self.names.site(int(row["site"])),
            wait_class=WAIT_CLASSES[int(row["wait_class"])],
            thread=self.names.thread(cause) if cause else None,
            thread_site=self.names.site(int(row["cause_site"])),
            waits=int(row["n"]),
            wait_ns=int(row["ns"]),
            held_ns=int(row["held_ns"]),
            wait_max_ns=int(row["max"]),
        )

    def _sites(self) -> list[SiteFigures]:
        rows = self.sites
        numbers = np.flatnonzero(_used(rows) | (rows["caused_ns"] > 0))
        numbers = numbers[numbers > 0]
        rows = rows[numbers]
        wait, hold = rows["wait_ns"], rows["hold_ns"]
        numbers = self._top(numbers, wait[:, 0], rows["caused_ns"], wait.sum(axis=1), hold)
        stacks = self._stacks_of("site")
        return [
            SiteFigures(
                address=int(row["address"]),
                pid=self.names.pid(int(row["process"])),
                site=self.names.site_at(int(row["process"]), int(row["address"])),
                kind=libptttrack_sums.KINDS.get(int(row["kind"]), "object"),
                wait_caused_ns=int(row["caused_ns"]),
                figures=self._figures(row, self._histogram(row["histogram"].reshape(1))),
                stacks=stacks((number,)),
            )
            for number, row in zip(numbers.tolist(), self.sites[numbers], strict=True)
        ]

    def _pairs(self) -> list[PairFigures]:
        rows = self.model.table("pairs")[1:]
        rows = rows[(_used(rows) | (rows["caused_ns"] > 0)) & (rows["thread"] > 0)]
        wait, hold = rows["wait_ns"], rows["hold_ns"]
        stacks = self._stacks_of("thread,object")
        return [
            PairFigures(
                thread=self.names.thread(int(row["thread"])),
                address=int(self.objects["address"][row["object"]]),
                kind=self.names.kind(int(row["object"])),
                name=self.names.object_name(int(row["object"])),
                wait_caused_ns=int(row["caused_ns"]),
                figures=self._figures(row, None),
                stacks=stacks((int(row["thread"]), int(row["object"]))),
            )
            for row in self._top(rows, wait[:, 0], wait.sum(axis=1), hold)
        ]

    def _open_wait(self, row: Any) -> OpenWait:
        owner = int(row["owner"])
        return OpenWait(
            thread=self.names.thread(int(row["thread"])),
            kind=self.names.kind(int(row["object"])),
            address=int(self.objects["address"][row["object"]]),
            name=self.names.object_name(int(row["object"])),
            t_ns=int(row["t_ns"]),
            dur_ns=int(row["dur_ns"]),
            wait_class=WAIT_CLASSES[int(row["wait_class"])],
            site=self.names.site(int(row["site"])),
            owner=self.names.thread(owner) if owner else None,
            owner_site=self.names.site(int(row["owner_site"])),
        )


def _used(rows: NDArray[Any]) -> NDArray[Any]:
    """Return for each row whether it has waits or holds."""
    return np.asarray((rows["wait_n"].sum(axis=1) > 0) | (rows["hold_n"] > 0))


def _known(value: Any) -> int | None:
    return int(value) if value >= 0 else None


_ADDED = ("wait_n", "wait_ns", "held_ns", "hold_n", "hold_ns")


def _group(rows: NDArray[Any], group: NDArray[Any], count: int) -> NDArray[Any]:
    """Return the sums of rows by group."""
    fields = (*_ADDED, "wait_max", "hold_max")
    sums = np.zeros(count, np.dtype([(f, np.uint64, rows.dtype[f].shape) for f in fields]))
    for field in _ADDED:
        np.add.at(sums[field], group, rows[field])
    for field in ("wait_max", "hold_max"):
        np.maximum.at(sums[field], group, rows[field])
    return sums


def _cycles(rows: NDArray[Any]) -> list[list[int]]:
    """Return each cycle of open waits once, as indices of rows in the order of owners."""
    wait_of = {int(row["thread"]): i for i, row in enumerate(rows)}
    after = {i: wait_of.get(int(row["owner"])) for i, row in enumerate(rows) if row["owner"]}
    seen: set[int] = set()
    cycles = []
    for start in range(len(rows)):
        chain: dict[int, None] = {}
        at: int | None = start
        while at is not None and at not in chain and at not in seen:
            chain[at] = None
            at = after.get(at)
        if at is not None and at in chain:
            walk = list(chain)
            cycles.append(walk[walk.index(at) :])
        seen.update(chain)
    return cycles
