"""Compares the answers of the viewer's server about a trace with the commands."""

from __future__ import annotations

import json
import time
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx
import pyarrow as pa

from nptltrace.analysis.vocabulary import document_types
from nptltrace.catalog.tables import WAIT_CLASSES
from nptltrace.ui import protocol
from nptltrace.ui.queries.naming import presentable
from nptltrace.ui.server.app import application
from nptltrace.ui.viewer import Viewer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.agreement.compare import Asked, Differences

__all__ = ["Page"]

_PATIENCE_S = 60
_DETAILS = 150
_ALL_ROWS = 1_000_000
_STATES = protocol.STATES


class Page:
    """Asks by requests to the application, as the page does.

    Args:
        viewer: The viewer that answers.
    """

    def __init__(self, viewer: Viewer) -> None:
        self._application = application(viewer, None)

    @classmethod
    @contextmanager
    def of(cls, trace: Path, *, follow: bool = False) -> Iterator[Page]:
        """Open a trace."""
        viewer = Viewer([trace], follow=follow)
        viewer.start()
        if not follow:
            viewer.wait_ready()
        try:
            yield cls(viewer)
        finally:
            viewer.close()

    def until_read(self) -> None:
        """Wait until the viewer has read a growing trace past its last event."""
        end = time.monotonic() + _PATIENCE_S
        last = self.ask("trace")["end_ns"]
        while self.ask("trace")["detail"]["until_ns"] <= last:
            assert time.monotonic() < end
            time.sleep(0.05)

    def ask(self, path: str, **arguments: Any) -> Any:
        """Return an answer: a document, or a table as rows."""
        found = self._answer(path, arguments)
        if found.headers["content-type"].startswith("application/json"):
            return json.loads(found.content)
        return pa.ipc.open_stream(found.content).read_all()

    def _answer(self, path: str, arguments: dict[str, Any]) -> httpx.Response:
        import asyncio

        async def request() -> httpx.Response:
            transport = httpx.ASGITransport(app=self._application)
            async with httpx.AsyncClient(transport=transport, base_url="http://viewer") as client:
                return await client.get(protocol.PREFIX + path, params=arguments, timeout=60)

        end = time.monotonic() + _PATIENCE_S
        while time.monotonic() < end:
            found = asyncio.run(request())
            if found.status_code == 200:
                return found
            if found.status_code != 202:
                raise AssertionError(f"{path} {arguments}: {found.text}")
            time.sleep(0.01)
        raise AssertionError(f"{path}: no answer")

    # ---- comparisons ----

    def compare(self, asked: Asked, found: Differences) -> None:
        """Compare all answers about a trace, or a window of it."""
        part = {}
        if asked.window is not None:
            part = {"from_ns": asked.window[0], "to_ns": asked.window[1]}
        parts: list[Callable[[Asked, dict[str, int], Differences], None]]
        parts = [self._contention, self._statistics, self._waits, self._flame, self._over_time]
        if asked.window is None:
            parts += [self._trace, self._rows, self._spans, self._overview, self._details,
                      self._findings, self._critical, self._order]  # fmt: skip
        for compared in parts:
            with found.about(compared.__name__.strip("_")):
                compared(asked, part, found)

    def _contention(self, asked: Asked, part: dict[str, int], found: Differences) -> None:
        for by in ("object", "thread", "site", "thread,object"):
            answer = self.ask("contention", by=by, limit=1000, **part)
            document = answer["report"]
            expected = asked.json("report", "--by", by)
            for name in document_types.Figures.__required_keys__:
                found.same(f"{by} {name}", document[name], expected[name])
            for name in ("elapsed_ns", "first_ns", "last_ns", "lost"):
                found.same(f"{by} {name}", document[name], expected[name])
            for table in ("objects", "threads", "sites", "pairs"):
                if table not in expected or len(expected[table]) > 1000:
                    continue
                if f"{table}_total" in answer:
                    found.same(
                        f"{by} {table}_total", answer[f"{table}_total"], len(expected[table])
                    )
                # The server tells the page of each object that a thread waited for, held or used.
                given = [json.dumps(row, sort_keys=True) for row in document.get(table, [])]
                wanted = [json.dumps(row, sort_keys=True) for row in expected[table]]
                missing = Counter(given) - Counter(wanted)
                found.compared += len(given)
                for row in list(missing)[:2]:
                    found.found.append(f"viewer, {by}: {table} has {row[:500]}")
                if document.get(table):
                    found.same(f"{by} wait_ns of {table}",
                               sum(r["wait_ns"] for r in document[table]),
                               sum(r["wait_ns"] for r in expected[table]))  # fmt: skip

    def _statistics(self, asked: Asked, part: dict[str, int], found: Differences) -> None:
        statistics = self.ask("statistics", **part)
        report, stat = asked.report, asked.json("stat")
        for name, value in statistics["figures"].items():
            found.same(name, value, report[name])
        found.same("events", statistics["events"], stat["events"])
        for name in {*statistics["event_types"], *stat["event_types"]}:
            found.same(name, statistics["event_types"].get(name), stat["event_types"].get(name))
        found.same("threads", statistics["threads"], len(report["threads"]))
        for name in ("running_ns", "blocked_ns"):
            found.same(name, statistics[name], sum(thread[name] for thread in report["threads"]))

    def _waits(self, asked: Asked, part: dict[str, int], found: Differences) -> None:
        report = asked.report
        for name in WAIT_CLASSES:
            listed = self.ask("wait-list", wait_class=name, limit=5000, **part)
            about = listed.schema.metadata
            waits, ns = (
                ("waits", "wait_ns") if name == "contended" else (f"{name}_waits", f"{name}_ns")
            )
            found.same(waits, int(about[b"total"]), report[waits])
            found.same(ns, int(about[b"inside_ns"]), report[ns])
            if listed.num_rows == int(about[b"total"]):
                found.same(f"{ns} listed", sum(listed["inside_ns"].to_pylist()), report[ns])

    def _flame(self, asked: Asked, part: dict[str, int], found: Differences) -> None:
        shown = {"waits": ("waits", "wait_ns"), "holders": ("", "held_ns"),
                 "holds": ("holds", "hold_ns"), "idle": ("idle_waits", "idle_ns")}  # fmt: skip
        for show, (count, ns) in shown.items():
            flame = self.ask("flame", show=show, **part)
            found.same(f"{show} {ns}", flame["ns"], asked.report[ns], len(flame["stacks"]))
            if count:
                found.same(f"{show} {count}", flame["count"], asked.report[count])
            for stack in flame["stacks"]:
                threads = sum(thread["ns"] for thread in stack["threads"])
                found.same(f"{show} threads of a stack", threads, stack["ns"], len(flame["stacks"]))

    def _over_time(self, asked: Asked, part: dict[str, int], found: Differences) -> None:
        known = self.ask("contention", limit=1000, **part)
        rows: dict[int, Counter[str]] = {}
        for row, one in zip(known["object_rows"], known["report"]["objects"], strict=True):
            mine = rows.setdefault(row, Counter())
            for name in ("waits", "wait_ns", "holds", "hold_ns"):
                mine[name] += one[name]
        # A global variable has a row for each place that initializes the variable.
        all_rows = self.ask("rows", by="object", limit=_ALL_ROWS).to_pylist()
        places = Counter((row["object"], row["pid"]) for row in all_rows)
        alone = {row["row"] for row in all_rows if places[row["object"], row["pid"]] == 1}
        for lock in self.ask("over-time", bins=7, limit=50, **part)["locks"]:
            if lock["row"] not in alone:
                continue
            expected = rows[lock["row"]]
            for what in ("waits", "holds"):
                ns = "wait_ns" if what == "waits" else "hold_ns"
                found.same(f"{lock['label']} {ns}", sum(lock[what]["ns"]), expected[ns], 7)
                found.same(f"{lock['label']} {what}", sum(lock[what]["count"]), expected[what])

    def _trace(self, asked: Asked, _: Any, found: Differences) -> None:
        info, report, stat = self.ask("trace"), asked.report, asked.json("stat")
        found.same("events", info["events"], stat["events"])
        found.same("lost", info["lost"], stat["lost"])
        found.same("losses", sum(loss["count"] for loss in info["losses"]), stat["lost"])
        found.same("threads", info["threads"], len(report["threads"]))
        found.same("first_ns", info["first_ns"], report["first_ns"])
        found.same("end_ns", info["end_ns"], report["last_ns"])
        for name in ("waits", "holds"):
            [row] = asked.sql(f"select count(*) n from {name}")  # noqa: S608
            found.same(name, info[name], row["n"])

    def _rows(self, asked: Asked, _: Any, found: Differences) -> None:
        report = asked.report
        names = ("waits", "wait_ns", "wait_max_ns", "idle_ns", "holds", "hold_ns")
        other = ("join_ns", "timeout_ns", "cancelled_ns", "unknown_ns", "gil_ns")
        rows = self.ask("rows", by="thread", limit=1000).to_pylist()
        if len(report["threads"]) <= 1000:
            found.same_rows(
                "threads",
                [(r["pid"], r["tid"], *(r[n] for n in names), r["other_ns"], r["caused_ns"],
                  r["start_ns"], r["end_ns"]) for r in rows],
                [(r["pid"], r["tid"], *(r[n] for n in names), sum(r[n] for n in other),
                  r["wait_caused_ns"], r["start_ns"], r["end_ns"]) for r in report["threads"]],
            )  # fmt: skip
        rows = self.ask("rows", by="object", limit=_ALL_ROWS).to_pylist()
        if len(report["objects"]) <= 1000:
            found.same_rows(
                "objects",
                _of_places([(r, r["other_ns"]) for r in rows if r["threads"]]),
                _of_places([(r, sum(r[n] for n in other)) for r in report["objects"]]),
            )

    def _spans(self, asked: Asked, _: Any, found: Differences) -> None:
        names = {"contended": "wait_ns"} | {name: f"{name}_ns" for name in _STATES[2:8]}
        info = self.ask("trace")
        for by in ("thread", "object"):
            rows = self.ask("rows", by=by, limit=200, sort="row").to_pylist()
            if (
                not rows
                or self.ask("rows", by=by, limit=1).schema.metadata[b"total"]
                != str(len(rows)).encode()
            ):
                continue
            numbers = ",".join(str(row["row"]) for row in rows)
            spans = self.ask("spans", by=by, rows=numbers, width=2000,
                             from_ns=info["first_ns"] - 1, to_ns=info["end_ns"] + 1)  # fmt: skip
            sums: Counter[str] = Counter()
            for span in spans.to_pylist():
                lane = span["lane"]
                if by == "thread" or lane:
                    sums[_STATES[span["state"]]] += span["busy_ns"]
            found.same(f"{by} holds", sums["held"] + sums["shared"], asked.report["hold_ns"])
            if by == "thread":
                for state, name in names.items():
                    found.same(f"{by} {name}", sums[state], asked.report[name])

    def _overview(self, asked: Asked, _: Any, found: Differences) -> None:
        table = self.ask("overview", width=100)
        report = asked.report
        others = ("join_ns", "timeout_ns", "cancelled_ns", "unknown_ns", "gil_ns")
        found.same("events", sum(table["events"].to_pylist()), asked.json("stat")["events"])
        found.same("contended", sum(table["contended_ns"].to_pylist()), report["wait_ns"], 100)
        found.same("idle", sum(table["idle_ns"].to_pylist()), report["idle_ns"], 100)
        found.same("other", sum(table["other_ns"].to_pylist()),
                   sum(report[name] for name in others), 100)  # fmt: skip
        found.same("findings", sum(table["findings"].to_pylist()),
                   len(asked.json("check")["findings"]))  # fmt: skip

    def _details(self, asked: Asked, _: Any, found: Differences) -> None:
        rows = asked.sql("select * from named_waits order by dur_ns desc, wait_id")
        known = {row["wait_id"]: row for row in rows}
        listed = self.ask("wait-list", limit=_DETAILS).to_pylist()
        for item in listed:
            if not item["wait_id"]:
                continue
            wait = self.ask(f"wait/{item['wait_id']}")["chain"][0]
            row = known.get(wait["wait_id"], {})
            pairs = {
                "t_ns": wait["t_ns"], "dur_ns": wait["dur_ns"], "held_ns": wait["held_ns"],
                "wake_ns": wait["wake_ns"], "ready_ns": wait["ready_ns"],
                "class": wait["wait_class"], "open": wait["open"], "result": wait["result"],
                "queue_depth": wait["queue_depth"], "tid": wait["thread"]["tid"],
                "owner_tid": wait["owner"] and wait["owner"]["tid"],
                "waker_tid": wait["waker"] and wait["waker"]["tid"],
                "waker_t_ns": wait["waker_t_ns"], "site": wait["site"],
                "owner_site": wait["owner_site"], "waker_site": wait["waker_site"],
            }  # fmt: skip
            for name, value in pairs.items():
                if name == "owner_site" and not row.get("owner_site"):
                    continue  # the page goes on to the first release of the owner
                found.same(f"wait {wait['wait_id']} {name}", value, row.get(name))
            found.same(f"wait {wait['wait_id']} listed", item["dur_ns"], wait["dur_ns"])

    def _findings(self, asked: Asked, _: Any, found: Differences) -> None:
        document = self.ask("findings")
        # Long texts are cut for a page.
        found.same("findings", document["findings"], presentable(asked.json("check")["findings"]))

    def _critical(self, asked: Asked, _: Any, found: Differences) -> None:
        path = self.ask("critical")["path"]
        found.same("document", path, asked.report["critical_path"])
        info = self.ask("trace")
        pieces = self.ask("path", from_ns=info["first_ns"] - 1, to_ns=info["end_ns"] + 1)
        found.same("pieces", sum(pieces["dur_ns"].to_pylist()), path["end_ns"] - path["start_ns"])

    def _order(self, asked: Asked, _: Any, found: Differences) -> None:
        order = self.ask("order", limit=1000)
        [row] = asked.sql("select count(*) n, sum(count)::bigint uses from edges")
        if order["edges_total"] == row["n"]:
            found.same("edges", order["edges_total"], row["n"])
            found.same("uses", sum(edge["count"] for edge in order["edges"]), row["uses"])
        else:  # all generations of an address are one node
            found.holds("edges", order["edges_total"] <= row["n"])


def _of_places(rows: list[tuple[dict[str, Any], int]]) -> Iterator[tuple[Any, ...]]:
    """Yield sums by address; each row is for one place of initialization."""
    sums: dict[Any, Counter[str]] = {}
    for row, other in rows:
        mine = sums.setdefault((row["object"], row["pid"]), Counter())
        for name in ("waits", "wait_ns", "idle_ns", "holds", "hold_ns", "generations"):
            mine[name] += row[name]
        mine["other_ns"] += other
        for name in ("wait_max_ns", "max_waiters"):
            mine[name] = max(mine[name], row[name])
    for key, figures in sums.items():
        yield (*key, *sorted(figures.items()))
