"""Compares the figures of a trace that PTT gives by the same name in several places.

    python -m tests.agreement.compare [--windows N] TRACE...

It asks the commands, the tables of SQL, the viewer, the exports and a store of `ptt fleet` about
each trace, and about windows of the trace. It prints each difference, and then exits with status 1.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import io
import json
import sys
import tempfile
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nptltrace
from nptltrace._units import duration
from nptltrace.analysis.answers import all_tables
from nptltrace.analysis.model import Window
from nptltrace.analysis.question_scope import Scope
from nptltrace.analysis.sql.query import Database
from nptltrace.analysis.vocabulary import document_types
from nptltrace.catalog.tables import WAIT_CLASSES
from nptltrace.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

__all__ = ["FIGURES", "Differences", "Trace", "Windowed", "compare", "differences"]

FIGURES: tuple[str, ...] = tuple(sorted(document_types.Figures.__required_keys__))
SUMS = [name for name in FIGURES if name.endswith(("waits", "_ns")) and "max" not in name
        and not name.endswith(("p50_ns", "p99_ns"))] + ["holds"]  # fmt: skip
_LIVE = ("waits", "wait_ns", "held_ns", "wake_ns")
_SHOWN = ("waits", "holders", "holds", "idle")
_OF_SHOWN = {"waits": "wait_ns", "holders": "held_ns", "holds": "hold_ns", "idle": "idle_ns"}
# A sum of parts is rounded down part by part.
_ROUNDED = 1


class Differences:
    """The differences, as sentences, and the number of comparisons."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self.compared = 0
        self._about = ""

    @contextlib.contextmanager
    def about(self, what: str) -> Iterator[None]:
        """Prefix the differences of a block with its subject; an error is a difference too."""
        before, self._about = self._about, f"{self._about}{what}: "
        try:
            yield
        except Exception as error:  # noqa: BLE001 -- other comparisons go on
            self.found.append(f"{self._about}{error!r}"[:600])
        finally:
            self._about = before

    def same(self, what: str, one: Any, other: Any, within: int = 0) -> None:
        """Expect two figures to be the same; null is 0."""
        self.compared += 1
        one, other = one or 0, other or 0
        if one != other and not (within and abs(one - other) <= within):
            self.found.append(f"{self._about}{what}: {one} and {other}"[:600])

    def holds(self, what: str, condition: object) -> None:
        """Expect something to be true."""
        self.compared += 1
        if not condition:
            self.found.append(f"{self._about}{what}: it is not so"[:600])

    def same_rows(self, what: str, one: Iterable[Any], other: Iterable[Any]) -> None:
        """Expect two lists of tuples to have the same members."""
        some, others = Counter(one), Counter(other)
        self.compared += sum(some.values())
        for row in list((some - others).keys())[:3]:
            near = [o for o in others - some if o[:2] == row[:2]][:1]
            self.found.append(f"{self._about}{what}: only the first has {row}, not {near}"[:900])
        for row in list((others - some).keys())[:3]:
            self.found.append(f"{self._about}{what}: only the second has {row}"[:600])


def ptt(*args: str | Path) -> str:
    """Return the output of a command; the command runs in this process to save its start."""
    data = io.BytesIO()
    out = io.TextIOWrapper(data, encoding="utf-8", write_through=True)
    err = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main([str(arg) for arg in args])
    if status not in {0, 1}:
        raise AssertionError(f"ptt {args}: {status} {err.getvalue()}")
    return data.getvalue().decode()


Trace = Path
Windowed = tuple[int, int] | None


class Asked:
    """The answers of the commands about a trace, or about a window of a trace."""

    def __init__(self, trace: Path, window: Windowed) -> None:
        self.trace, self.window = trace, window
        self._documents: dict[tuple[str, ...], Any] = {}
        self.part = [] if window is None else [
            "--from", f"{window[0]}ns", "--to", f"{window[1]}ns"
        ]  # fmt: skip
        self.traceset = nptltrace.open(trace)
        scope = Scope(window=Window(*window or (None, None)))
        self._database = Database(all_tables(self.traceset, self.traceset._symbols(), scope))
        self.report: Any = self.json("report")
        self.last_ns: int = json.loads(ptt("report", "--format", "json", trace))["last_ns"]

    @property
    def name(self) -> str:
        """The subject: the whole trace, or the window."""
        return "whole" if self.window is None else f"window {self.window}"

    def json(self, command: str, *options: str) -> Any:
        """Return the JSON document of a command."""
        key = (command, *options)
        if key not in self._documents:
            text = ptt(command, "--format", "json", *options, *self.part, self.trace)
            self._documents[key] = json.loads(text)
        return self._documents[key]

    def csv(self, command: str, *options: str) -> list[dict[str, str]]:
        """Return the rows of a command."""
        text = ptt(command, "--format", "csv", *options, *self.part, self.trace)
        return list(csv.DictReader(io.StringIO(text)))

    def close(self) -> None:
        """Close the traces and the database."""
        self._database.close()
        self.traceset.close()

    def text(self, command: str, *options: str) -> list[str]:
        """Return the lines of a command, with single spaces."""
        lines = ptt(command, *options, *self.part, self.trace).splitlines()
        return [" ".join(line.split()) for line in lines]

    def sql(self, query: str) -> list[dict[str, Any]]:
        """Return the rows of a query."""
        rows: list[dict[str, Any]] = self._database.query(query, None).to_pylist()
        return rows


def figures(row: Mapping[str, Any], names: Iterable[str]) -> tuple[Any, ...]:
    """Return some figures, with 0 for missing figures."""
    return tuple(row[name] or 0 for name in names)


def total(rows: Iterable[Mapping[str, Any]], name: str) -> int:
    """Return the sum of a figure over rows."""
    return sum(row[name] or 0 for row in rows)


# ---- report: its own forms ----


def reports(asked: Asked, found: Differences) -> None:
    """Compare JSON, CSV and text of the report with each other, and parts with sums."""
    report = asked.report
    tables = {"object": "objects", "thread": "threads", "site": "sites", "thread,object": "pairs"}
    for by, table in tables.items():
        with found.about(f"report --by {by}"):
            document = asked.json("report", "--by", by)
            found.same_rows("sums", [figures(document, FIGURES)], [figures(report, FIGURES)])
            rows = document[table]
            # A join waits for a thread, and a thread is no object.
            for name in SUMS:
                if not name.startswith("join") or by in {"thread", "site"}:
                    found.same(f"sum of {name}", total(rows, name), report[name])
            _same_csv(asked.csv("report", "--by", by), rows, found)
            _same_text(asked.text("report", "--by", by, "-n", "0"), by, document, rows, found)
    with found.about("report, holders"):
        for item in report["objects"]:
            caused = total(item["blamed"], "wait_caused_ns")
            within = _ROUNDED * len(item["blamed"])
            found.same(f"of {item['kind']} {item['name']}", caused, item["held_ns"], within)
        found.same("held and wake", report["held_ns"] + report["wake_ns"], report["wait_ns"])
    for shown, name in _OF_SHOWN.items():
        with found.about(f"report --by stack --show {shown}"):
            stacks = asked.json("report", "--by", "stack", "--show", shown)["stacks"]
            column = "wait_caused_ns" if shown == "holders" else name
            found.same(name, total(stacks, column), report[name], _ROUNDED * len(stacks))
            rows = asked.csv("report", "--by", "stack", "--show", shown)
            found.same_rows(
                "CSV",
                [("; ".join(stack["stack"]), str(stack[column])) for stack in stacks],
                [(row["stack"], row[column]) for row in rows],
            )
    path = report["critical_path"]
    pieces = [
        thread["run_ns"] + thread["latency_ns"] + thread["open_ns"] for thread in path["threads"]
    ]
    found.same("report, critical path", sum(pieces), path["end_ns"] - path["start_ns"])


def _same_csv(
    rows: list[dict[str, str]], documents: Sequence[Mapping[str, Any]], found: Differences
) -> None:
    found.same("rows of CSV", len(rows), len(documents))
    for row, document in zip(rows, documents, strict=False):
        for name, text in row.items():
            expected = document[name]
            found.same(f"CSV {name}", text, "" if expected is None else str(expected))


def _same_text(
    lines: list[str], by: str, document: Any, rows: Sequence[Mapping[str, Any]], found: Differences
) -> None:
    if document["waits"]:
        said = f"contended for {duration(document['wait_ns'])} in {document['waits']:,} wait"
        found.holds("text of sums", any(said in line for line in lines))
    for row in rows:
        cells = [row["wait_ns"], row["wait_max_ns"], row["wait_p99_ns"] or 0]
        if by == "thread,object":
            cells = [row["wait_ns"], row["hold_ns"], row["wait_caused_ns"]]
        begin = f"{row['waits']:,} "
        if by == "thread":
            begin = f"{row['tid']} "
            life = row["end_ns"] - row["start_ns"]
            cells = [life, *figures(row, ["running_ns", "wait_ns", "idle_ns", "join_ns"])]
            cells += [row["gil_ns"]] if any(item["gil_ns"] for item in rows) else []
        elif not row["waits"]:
            continue
        said = " ".join(duration(ns) if ns else "-" for ns in cells)
        wanted = [line for line in lines if f"{said} " in f"{line} " and begin in line]
        found.holds(f"text of {begin}{said}", bool(wanted))


# ---- SQL ----


def tables(asked: Asked, found: Differences) -> None:
    """Compare tables and views with the report."""
    report = asked.report
    with found.about("SQL"):
        classes = {
            row["class"]: row
            for row in asked.sql(
                "select class, count(*) n, sum(dur_ns)::bigint ns, sum(held_ns)::bigint held, "
                "sum(wake_ns)::bigint wake, max(dur_ns) most from waits group by all"
            )
        }
        for name in WAIT_CLASSES:
            row = classes.get(name, {})
            waits, ns = (
                ("waits", "wait_ns") if name == "contended" else (f"{name}_waits", f"{name}_ns")
            )
            found.same(waits, row.get("n"), report[waits])
            found.same(ns, row.get("ns"), report[ns])
        row = classes.get("contended", {})
        for column, figure in {"held": "held_ns", "wake": "wake_ns", "most": "wait_max_ns"}.items():
            found.same(figure, row.get(column), report[figure])
        [row] = asked.sql("select count(*) n, sum(dur_ns)::bigint ns, max(dur_ns) most from holds")
        for column, figure in {"n": "holds", "ns": "hold_ns", "most": "hold_max_ns"}.items():
            found.same(figure, row[column], report[figure])
        opened = asked.sql(
            "select tid, pid, begin_ns as t_ns, t_ns + dur_ns - begin_ns as dur_ns from open_waits"
        )
        names = ["tid", "pid", "t_ns", "dur_ns"]
        found.same_rows(
            "open waits",
            [figures(row, names) for row in opened],
            [figures(row, names) for row in report["never_ended"]],
        )
    _objects(asked, found)
    _threads(asked, found)
    _others(asked, found)


def _objects(asked: Asked, found: Differences) -> None:
    objects = asked.report["objects"]
    # A table has the kind that the C library knows. A report has the kind of a library above.
    names = ("pid", "init_site", "waits", "wait_ns", "held_ns", "wake_ns", "wait_max_ns",
             "wait_p50_ns", "wait_p99_ns", "idle_ns", "holds", "hold_ns", "hold_max_ns", "threads",
             "max_waiters", "generations")  # fmt: skip
    rows = asked.sql("select *, address(object) as place from contention_by_object")
    found.same_rows(
        "contention_by_object and report",
        [(row["place"], *figures(row, names)) for row in rows],
        [(item["object"], *figures(item, names)) for item in objects],
    )


def _threads(asked: Asked, found: Differences) -> None:
    threads = asked.report["threads"]
    names = ("wait_ns", "idle_ns", "join_ns", "timeout_ns", "cancelled_ns", "unknown_ns", "gil_ns",
             "running_ns")  # fmt: skip
    found.same_rows(
        "idle_vs_contended and report",
        [(row["pid"], row["tid"], row["life_ns"], *figures(row, names))
         for row in asked.sql("from idle_vs_contended")],
        [(thread["pid"], thread["tid"], thread["end_ns"] - thread["start_ns"],
          *figures(thread, names)) for thread in threads],
    )  # fmt: skip
    found.same_rows(
        "threads and report",
        [(*figures(row, ("pid", "tid", "start_ns", "last_ns", "running_ns")),
          row["cpu_ns"], row["ready_ns"])
         for row in asked.sql("from threads where tid is not null")],
        [(*figures(thread, ("pid", "tid", "start_ns", "end_ns", "running_ns")),
          thread["cpu_ns"], thread["ready_ns"]) for thread in threads],
    )  # fmt: skip
    for table in ("states", "thread_timeline"):
        length = "dur_ns" if table == "states" else "end_ns - start_ns"
        lives = {
            (row["pid"], row["tid"]): row["ns"]
            for row in asked.sql(
                f"select pid, tid, sum({length})::bigint ns from {table} group by all"  # noqa: S608
            )
        }
        expected: Counter[Any] = Counter()
        for thread in threads:
            expected[thread["pid"], thread["tid"]] += thread["end_ns"] - thread["start_ns"]
            parts = thread["running_ns"] + thread["blocked_ns"]
            found.same("thread: parts of its life", parts, thread["end_ns"] - thread["start_ns"])
        for key in {*lives, *expected}:
            found.same(f"{table} of thread {key}", lives.get(key), expected[key])


def _others(asked: Asked, found: Differences) -> None:
    report = asked.report
    sites = asked.json("report", "--by", "site")["sites"]
    # In the view, a wait for the mutex of a condition has the kind `mutex`; the call has `cond`.
    names = ("waits", "wait_ns", "held_ns", "wake_ns")
    found.same_rows(
        "contention_by_site and report",
        _merged((row["site"] or "", row["pid"], *figures(row, names))
                for row in asked.sql("from contention_by_site")),
        _merged((site["site"], site["pid"], *figures(site, names))
                for site in sites if site["waits"]),
    )  # fmt: skip
    for table in ("blame", "blames"):
        ns = total(asked.sql(f"from {table}"), "wait_caused_ns")
        found.same(f"{table} and report", ns, report["held_ns"], _ROUNDED * 1000)
    caused = Counter({(thread["pid"], thread["tid"]): 0 for thread in report["threads"]})
    for item in report["objects"]:
        for holder in item["blamed"]:
            if holder["tid"] is not None:
                caused[holder["pid"], holder["tid"]] += holder["wait_caused_ns"]
    threads: Counter[Any] = Counter()
    for thread in report["threads"]:
        threads[thread["pid"], thread["tid"]] += thread["wait_caused_ns"]
    for key in {*caused, *threads}:
        found.same(f"caused by thread {key}", threads[key], caused[key])
    wakes = asked.sql(
        "select address(o.addr) as place, o.pid, waker_tid tid, coalesce(waker_site, '') site, "
        "count(*) n, sum(dur_ns)::bigint ns "
        "from named_waits w join objects o using (run_id, lock_id) "
        "where waker_tid is not null and op <> 'join' group by all"
    )
    merged = _merged(
        ((item["object"], item["pid"], waker["tid"], waker["site"], waker["count"],
          waker["blocked_ns"]) for item in report["objects"] for waker in item["wakers"]), keys=4
    )  # fmt: skip
    rows = [tuple(row.values()) for row in wakes]
    found.same_rows("wakers", rows, [row for row in merged if row[2] is not None])


def _merged(rows: Iterable[tuple[Any, ...]], keys: int = 2) -> list[tuple[Any, ...]]:
    """Return one row for each key, with the sums of the figures."""
    found: dict[tuple[Any, ...], list[Any]] = {}
    for row in rows:
        sums = found.setdefault(row[:keys], [0] * (len(row) - keys))
        sums[:] = (a + b for a, b in zip(sums, row[keys:], strict=True))
    return [(*key, *values) for key, values in found.items()]


# ---- stat, view, top, check ----


def counts(asked: Asked, found: Differences) -> None:
    """Compare numbers of events, and lengths."""
    stat = asked.json("stat")
    with found.about("stat"):
        report = asked.report
        [row] = asked.sql("select count(*) n from events")
        found.same("events and SQL", stat["events"], row["n"])
        found.same("events by type", sum(stat["event_types"].values()), stat["events"])
        rows = asked.sql("select event, count(*) n from events group by 1")
        types = {row["event"]: row["n"] for row in rows}
        for name in {*types, *stat["event_types"]}:
            found.same(f"events {name}", stat["event_types"].get(name), types.get(name))
        threads = [thread for process in stat["processes"] for thread in process["threads"]]
        found.same("events of threads", total(threads, "events"), stat["events"])
        rows = asked.sql("select address(object) as place, count(*) n from events group by 1")
        objects = {row["place"]: row["n"] for row in rows}
        sums: Counter[str] = Counter()
        for item in stat["objects"]:
            sums[item["object"]] += item["events"]
        for at, number in sums.items():
            if number > objects.get(at, 0):
                found.same(f"events of {at}", number, objects.get(at))
        found.same("lost", stat["lost"], report["lost"])
        if asked.window is None:
            found.same("duration", stat["duration_ns"], report["elapsed_ns"])
            found.same("lost by cause", sum(stat["lost_by_cause"].values()), stat["lost"])
            [row] = asked.sql("select sum(count)::bigint n from lost")
            found.same("lost and SQL", row["n"], stat["lost"])
            found.same("threads", len(threads), len(report["threads"]))
        lines = asked.text("stat", "-n", "0")
        said = f"{stat['events']:,} events" if stat["events"] != 1 else "1 event"
        found.holds(f"text: {said}", any(line.startswith(said) for line in lines))
        for name, number in stat["event_types"].items():
            row_begins = f"{name} {number:,} "
            found.holds(f"text: {row_begins}", any(row_begins in f"{x} " for x in lines))
    lines = ptt("view", "--format", "raw", *asked.part, asked.trace).splitlines()
    found.same("lines of view", len(lines), stat["events"])


def live(asked: Asked, found: Differences) -> None:
    """Compare the last snapshot of `ptt top`."""
    report = asked.report
    if asked.window is not None and asked.window[1] <= asked.last_ns:
        return  # later events decide the class, and `ptt top` does not read them
    with found.about("top"):
        top = json.loads(
            ptt("top", "-n", "1", "--format", "json", *asked.part, asked.trace).splitlines()[-1]
        )
        opened = sum(wait["class"] == "contended" for wait in report["never_ended"])
        for name in _LIVE[1:]:
            found.same(name, top[f"total_{name}"], report[name])
        found.same("waits", top["total_waits"], report["waits"] - opened)
        last = [w for w in report["never_ended"] if w["t_ns"] + w["dur_ns"] == report["last_ns"]]
        waiting = sum(wait["class"] == "contended" for wait in last)
        found.same("waiting", top["waiting"], waiting)
        found.same("length", top["ts_ns"] - top["since_ns"], report["elapsed_ns"])
        found.same("lost", top["lost"], report["lost"])
        by = {"objects": ("object", "pid", "kind"), "threads": ("pid", "tid"),
              "sites": ("site", "pid", "kind")}  # fmt: skip
        sites = asked.json("report", "--by", "site")["sites"]
        for table, key in by.items():
            rows = sites if table == "sites" else report[table]
            for name in ("total_wait_ns", "total_held_ns"):
                mine, theirs = (
                    _by(top[table], key, name),
                    _by(rows, key, name.removeprefix("total_")),
                )
                for at in mine:
                    found.same(f"{table} {at} {name}", mine[at], theirs.get(at))
            if table != "threads":  # it lists no threads that ended earlier
                found.same(f"sum of {table}", total(top[table], "total_wait_ns"), report["wait_ns"])


def _by(rows: Iterable[Mapping[str, Any]], key: Sequence[str], name: str) -> Counter[Any]:
    sums: Counter[Any] = Counter()
    for row in rows:
        sums[tuple(row[part] for part in key)] += row[name] or 0
    return sums


def checks(asked: Asked, found: Differences) -> None:
    """Compare findings."""
    document = asked.json("check")
    with found.about("check"):
        rows = asked.sql("from findings")
        names = ("kind", "ts_ns", "pid", "count", "message")
        found.same_rows(
            "SQL",
            [figures(row, names) for row in rows],
            [figures(finding, names) for finding in document["findings"]],
        )
        found.same("CSV", len(asked.csv("check")), len(document["findings"]))


# ---- exports ----


def exports(asked: Asked, found: Differences, directory: Path) -> None:
    """Compare the formats that other programs read."""
    report = asked.report

    def export(name: str, *options: str) -> Path:
        out = directory / f"{name}{'-'.join(options)}"
        ptt("export", "-q", "--format", name, *options, *asked.part, "-o", out, asked.trace)
        return out

    for shown, name in _OF_SHOWN.items():
        with found.about(f"folded {shown}"):
            text = export("folded", "--show", shown).read_text()
            counts = [int(line.rsplit(" ", 1)[1]) for line in text.splitlines()]
            found.same(name, sum(counts), report[name], _ROUNDED * len(counts))
        with found.about(f"speedscope {shown}"):
            profiles = json.loads(export("speedscope", "--show", shown).read_text())["profiles"]
            weights = profiles[0]["weights"] if profiles else []
            found.same(name, sum(weights), report[name], _ROUNDED * len(weights))
    kinds = {"contended": "wait_ns", "hold": "hold_ns"} | {
        name: f"{name}_ns" for name in WAIT_CLASSES if name != "contended"
    }
    with found.about("chrome"):
        events = json.loads(export("chrome").read_text())["traceEvents"]
        sums: Counter[str] = Counter()
        numbers: Counter[str] = Counter()
        for event in events:
            if event["ph"] == "X":
                sums[event["cat"]] += round(event["dur"] * 1000)
                numbers[event["cat"]] += 1
        for kind, name in kinds.items():
            found.same(name, sums[kind], report[name], numbers[kind])
            counts_of = {"contended": "waits", "hold": "holds"}
            count = counts_of.get(kind, f"{kind}_waits")
            found.same(count, numbers[kind], report[count])
    with found.about("firefox"):
        threads = json.loads(_unpacked(export("firefox")))["threads"]
        lengths = [
            end - begin
            for thread in threads
            for begin, end in zip(
                *map(thread["markers"].get, ("startTime", "endTime")), strict=True
            )
            if end is not None and begin is not None
        ]  # fmt: skip
        found.same("waits", len(lengths), report["waits"])
        ns = round(sum(lengths) * 1e6)
        found.same("wait_ns", ns, report["wait_ns"], _ROUNDED * 1000 * max(len(lengths), 1))
    with found.about("paje"):
        found.holds("lines", bool(export("paje").read_text().splitlines()))
    _tables_elsewhere(asked, found, export)


def _unpacked(path: Path) -> bytes:
    import gzip

    data = path.read_bytes()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def _tables_elsewhere(asked: Asked, found: Differences, export: Callable[..., Path]) -> None:
    import pyarrow.dataset

    rows, columns = export("csv"), export("parquet")
    for name in asked.traceset.tables:
        with found.about(f"table {name}"):
            [row] = asked.sql(f"select count(*) n from {name}")  # noqa: S608
            at = rows / f"{name}.csv"
            lines = io.StringIO(at.read_text()) if at.exists() else io.StringIO()
            found.same("rows of CSV", len(list(csv.DictReader(lines))), row["n"])
            if (columns / f"dataset={name}").exists():
                read = pyarrow.dataset.dataset(columns / f"dataset={name}", format="parquet")
                found.same("rows of Parquet", read.count_rows(), row["n"])
            else:
                found.same("rows of Parquet", 0, row["n"])


def fleet(asked: Asked, found: Differences, directory: Path) -> None:
    """Compare a store with the run alone."""
    with found.about("fleet"):
        store = directory / "store"
        ptt("fleet", "add", "-q", store, asked.trace)
        document = json.loads(ptt("fleet", "report", store, "--by", "host", "--format", "json"))
        report = asked.report
        found.same("wait_ns", document["wait_ns"], report["wait_ns"])
        found.same("of places", total(document["places"], "wait_ns"), report["wait_ns"])
        found.same("held", total(document["places"], "held_ns"), report["held_ns"])
        found.same("waits", total(document["places"], "waits"), report["waits"])
        runs = json.loads(ptt("fleet", "list", store, "--format", "json"))["runs"]
        stat = asked.json("stat")
        found.same("events", runs[0]["events"], stat["events"])
        for table in ("waits", "holds", "threads", "objects", "findings"):
            query = f"select count(*) n from {table}"  # noqa: S608
            rows = json.loads(ptt("sql", "--store", store, "--format", "json", query))
            found.same(f"rows of {table}", rows[0]["n"], asked.sql(query)[0]["n"])
        query = ("select class, count(*) n, sum(dur_ns)::bigint ns from waits group by all "
                 "order by 1")  # fmt: skip
        rows = json.loads(ptt("sql", "--store", store, "--format", "json", query))
        found.same_rows("waits", [tuple(r.values()) for r in rows],
                        [tuple(r.values()) for r in asked.sql(query)])  # fmt: skip


def earlier(asked: Asked, found: Differences) -> None:
    """Compare `ptt diff` of a run with itself."""
    with found.about("diff"):
        for by in ("site", "object", "thread"):
            text = ptt("diff", "--by", by, "--format", "json", *asked.part, asked.trace, "--",
                       asked.trace)  # fmt: skip
            for name, metric in json.loads(text)["total"].items():
                found.same(f"{by} {name}", metric["before"], metric["after"])
                if name in asked.report:
                    found.same(f"{by} {name}", metric["after"], asked.report[name])


# ---- everything ----


def windows(report: Mapping[str, Any], count: int) -> list[tuple[int, int]]:
    """Return windows of the same length that divide a trace."""
    first, last = report["first_ns"], report["last_ns"] + 1
    edges = [first + (last - first) * n // count for n in range(count)] + [last] if count else []
    return [(a, b) for a, b in pairwise(edges) if a < b]


def _same_as_windows(asked: Asked, parts: Sequence[Asked], found: Differences) -> None:
    """Expect the lengths in all windows to add up to the lengths of the whole trace."""
    with found.about("sum of windows"):
        for name in SUMS:
            if name.endswith("_ns"):
                ns = total([part.report for part in parts], name)
                found.same(name, ns, asked.report[name], _ROUNDED * 20)
        for name in ("running_ns", "blocked_ns", "wait_caused_ns"):
            ns = sum(total(part.report["threads"], name) for part in parts)
            within = _ROUNDED * 20 * len(asked.report["threads"])
            found.same(name, ns, total(asked.report["threads"], name), within)


def compare(trace: Path, *, count: int = 3, exported: bool = True) -> Differences:
    """Return the differences in a trace that has ended.

    Args:
        trace: Its directory.
        count: The number of windows to compare as well.
        exported: Whether to compare exports and a store of `ptt fleet` too; this takes longer.
    """
    from tests.agreement.viewed import Page  # it needs this module

    found = Differences()
    asked = Asked(trace, None)
    parts = [Asked(trace, window) for window in windows(asked.report, count)]
    with Page.of(trace) as page:
        for item in [asked, *parts]:
            with found.about(item.name):
                for part in (reports, tables, counts, live, checks):
                    with found.about(part.__name__):
                        part(item, found)
                with found.about("viewer"):
                    page.compare(item, found)
    for item in [asked, *parts[1:2]] if exported else []:
        with found.about(item.name), tempfile.TemporaryDirectory() as directory:
            exports(item, found, Path(directory))
            if item is asked:
                fleet(item, found, Path(directory))
                earlier(item, found)
    if parts:
        _same_as_windows(asked, parts, found)
    for item in [asked, *parts]:
        item.close()
    return found


def differences(traces: Sequence[Path], *, count: int) -> int:
    """Print the differences in some traces; return their number."""
    number = 0
    for trace in traces:
        found = compare(trace, count=count)
        print(f"{trace}: {found.compared:,} figures compared, {len(found.found)} differ")
        for line in found.found:
            print(f"  {line}")
        number += len(found.found)
    return number


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="compare all figures of traces")
    parser.add_argument("traces", metavar="TRACE", nargs="+", type=Path)
    parser.add_argument("--windows", type=int, default=3, help="how many (default: 3)")
    given = parser.parse_args()
    sys.exit(1 if differences(given.traces, count=given.windows) else 0)
