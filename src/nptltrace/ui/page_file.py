"""The page with a part of a trace in it: one file that needs no server, no network and no PTT.

The file carries the answers of a `Viewer` for the part, compressed, by name. The page asks them
instead of the server (`web/src/embedded`). They have the shapes that `protocol` declares.
"""

from __future__ import annotations

import base64
import gzip
import re
import time
from functools import partial
from hashlib import sha256
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nptltrace import _paths
from nptltrace.analysis.report.stacks.sums import STACK_MEASURES
from nptltrace.errors import PttError, UsageError
from nptltrace.ui import protocol
from nptltrace.ui.jobs import NotReady
from nptltrace.ui.queries.naming import presentable_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nptltrace.ui.queries.ranges import By
    from nptltrace.ui.viewer import Viewer

__all__ = ["MAX_EVENTS", "MAX_LISTED", "MAX_WAITS", "page"]

# Limits of the file. The page says so if something was left out.
MAX_EVENTS = 200_000
MAX_LISTED = 5000
MAX_WAITS = 20_000
_MAX_SPANS = 400_000
_PIECES = 64
_ARROWS = 20_000
_OVERVIEW = 2048
_EDGES = 2000
_WORST = 2000
_STACKS = 5000
_BINS = 120
_LOCKS = 12
_POLL_S = 0.05
_COMPARED: tuple[By, ...] = ("site", "object", "thread")
_VIEWS = ("object", "thread", "site", "thread,object")
# The file may fetch nothing from anywhere, and may run only its own script.
_POLICY = (
    "default-src 'none'; script-src '{script}'; style-src '{sheet}'; "
    "img-src data: blob:; base-uri 'none'; form-action 'none'"
)


def page(viewer: Viewer, from_ns: int = -1, to_ns: int = -1) -> bytes:
    """Return the page, as HTML in one file, with a part of the trace that a viewer shows.

    Args:
        viewer: A started viewer.
        from_ns: Start of the part, -1 for the start of the trace.
        to_ns: First time after the part, -1 for the end of the trace.

    Raises:
        NativeFilesMissing: PTT was built without the page.
        UsageError: The viewer follows a recording that goes on.
        PttError: The trace cannot be read, or the viewer was asked to end.
    """
    directory = _paths.page_dir()
    texts = {
        name: (directory / name).read_text(encoding="utf-8")
        for name in ("index.html", "app.css", "app.js")
    }
    return _assembled(texts, _Part(viewer, from_ns, to_ns).items()).encode("utf-8", "replace")


def _assembled(texts: dict[str, str], items: dict[str, bytes]) -> str:
    """Return the page with its sheet, its script and the data inside."""
    data = "".join(
        f'<script type="text/plain" id="ptt-{name}">{base64.b64encode(packed).decode()}</script>\n'
        for name, packed in items.items()
    )
    html = texts["index.html"]
    sheet = texts["app.css"].replace("</style", "<\\/style")
    script = texts["app.js"].replace("</script", "<\\/script").replace("<!--", "<\\!--")
    policy = _POLICY.format(script=_sum(script), sheet=_sum(sheet))
    element = f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    html = html.replace("<head>", f"<head>\n    {element}", 1)
    html = re.sub(r'<link rel="stylesheet"[^>]*>', lambda _: f"<style>{sheet}</style>", html)
    return re.sub(
        r'<script src="app\.js"[^>]*></script>', lambda _: f"{data}<script>{script}</script>", html
    )


def _sum(text: str) -> str:
    """Return the source expression that allows a script or a sheet in the content policy."""
    return f"sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}"


class _Part:
    """A part of a trace, as the answers of its viewer."""

    def __init__(self, viewer: Viewer, from_ns: int, to_ns: int) -> None:
        self._viewer = viewer
        trace: protocol.TraceInfo = self._wait(lambda: _ready(viewer))
        self._is_whole = from_ns == -1 and to_ns == -1
        self._trace = trace
        self._from = trace["first_ns"] if from_ns == -1 else from_ns
        self._end = trace["end_ns"] if to_ns == -1 else to_ns
        # The part includes the last event of the trace.
        self._to = trace["end_ns"] + 1 if to_ns == -1 else to_ns
        self._left_out: list[str] = []

    def items(self) -> dict[str, bytes]:
        """Return all answers that the page needs, compressed, by name."""
        viewer = self._viewer
        window = {"from_ns": self._from, "to_ns": self._to}
        ends = {"from_ns": -1, "to_ns": -1} if self._is_whole else window
        made: dict[str, Any] = {}
        for by in ("thread", "object", "processor"):
            rows = self._rows(by)
            made[f"rows-{by}"] = rows
            made[f"spans-{by}"] = self._spans(by, rows["row"].to_pylist())
        threads = made["rows-thread"]["row"].to_pylist()
        made["arrows"] = _joined(
            viewer.arrows(rows=part, width=protocol.MAX_WIDTH, limit=_ARROWS, **window)
            for part in _parts(threads)
        )
        made["waits"] = self._waits(made["spans-thread"])
        made["events"] = self._events()
        if len(made["events"]) >= MAX_EVENTS:
            self._left_out.append(f"Only the first {MAX_EVENTS:,} events are in this file")
        made["chosen"] = self._chosen(made["events"])
        made["overview"] = viewer.overview(width=_OVERVIEW)
        made["path"] = self._wait(lambda: viewer.path(width=protocol.MAX_WIDTH, **window))
        for by in _VIEWS:
            ask = partial(viewer.contention, by=by, limit=_WORST, **ends)
            made[f"contention-{by.replace(',', '-')}"] = self._wait(ask)
        for show in STACK_MEASURES:
            made[f"flame-{show}"] = self._wait(
                partial(viewer.flame, show=show, limit=_STACKS, **ends)
            )
        made["over-time"] = self._wait(
            partial(viewer.over_time, object=[], bins=_BINS, limit=_LOCKS, **ends)
        )
        for by in _COMPARED if self._trace["before"] else ():
            made[f"diff-{by}"] = self._wait(partial(viewer.diff, by=by, **ends))
        made["findings"] = self._findings()
        made["order"] = self._wait(lambda: viewer.order(limit=_EDGES))
        made["critical"] = self._wait(viewer.critical)
        made["statistics"] = self._wait(lambda: viewer.statistics(**window))
        made["trace"] = self._about()
        return {name: _packed(value) for name, value in made.items()}

    def _wait(self, ask: Callable[[], Any]) -> Any:
        """Ask until the answer is there."""
        while True:
            self._go_on()
            try:
                return ask()
            except NotReady:
                time.sleep(_POLL_S)

    def _go_on(self) -> None:
        """Give up if the viewer shall end: then nobody computes answers any more."""
        if self._viewer.closed:
            raise PttError("the viewer has ended")

    def _about(self) -> protocol.TraceInfo:
        """Return what the page says about the trace, with a remark for each thing left out."""
        if not self._is_whole:
            self._left_out.insert(
                0, "This is a part of a trace; the sums in the rows are of the whole"
            )
        return {
            **self._trace,
            "follow": False,
            "first_ns": max(self._trace["first_ns"], self._from),
            "end_ns": self._end,
            "remarks": [*self._trace["remarks"], *self._left_out],
        }

    def _rows(self, by: str) -> pa.Table:
        parts = []
        total = 1
        for offset in range(0, MAX_LISTED, protocol.MAX_ROWS):
            if offset >= total:
                break
            part = self._viewer.rows(
                by=by, sort="wait", filter="", rows=[], offset=offset, limit=protocol.MAX_ROWS
            )
            total = int((part.schema.metadata or {}).get(b"total", b"0"))
            parts.append(part)
        if total > MAX_LISTED:
            first = f"Only the first {MAX_LISTED:,} of {total:,} {by}s"
            self._left_out.append(f"{first} are in this file")
        return _joined(parts)

    def _spans(self, by: str, rows: list[int]) -> pa.Table:
        """Return the spans to draw, as detailed as the limits allow."""
        pieces, most = 1, min(_PIECES, (self._to - self._from) // 4)
        best = self._spans_in(by, rows, pieces)
        while _merged(best) and pieces < most and best.num_rows * 2 < _MAX_SPANS:
            pieces *= 4
            finer = self._spans_in(by, rows, pieces)
            if finer.num_rows > _MAX_SPANS:
                break
            best = finer
        if _merged(best):
            self._left_out.append(f"Short spans of {by}s that lie close together are drawn as one")
        return best

    def _spans_in(self, by: str, rows: list[int], pieces: int) -> pa.Table:
        """Return the spans of equal pieces of the part. A span is in the piece of its start."""
        edges = [self._from + (self._to - self._from) * n // pieces for n in range(pieces + 1)]
        tables = []
        for begin, end in pairwise(edges):
            self._go_on()
            spans = self._viewer.drawn(by, rows, begin, end, protocol.MAX_WIDTH)
            if begin > self._from:
                spans = spans.filter(pc.greater_equal(spans["t_ns"], begin))
            tables.append(spans)
        return _joined(tables)

    def _waits(self, spans: pa.Table) -> dict[str, Any]:
        """Return waits and the numbers of their chains, by number; the longest if too many."""
        order = pc.sort_indices(spans["dur_ns"], sort_keys=[("", "descending")])
        numbers = [n for n in dict.fromkeys(spans["wait_id"].take(order).to_pylist()) if n]
        if len(numbers) > MAX_WAITS:
            self._left_out.append(f"Only the {MAX_WAITS:,} longest waits can be opened")
        waits: dict[int, Any] = {}
        chains: dict[int, list[int]] = {}
        for number in numbers[:MAX_WAITS]:
            self._go_on()
            chain = self._viewer.wait(id=number)["chain"]
            waits |= {wait["wait_id"]: wait for wait in chain}
            chains[number] = [wait["wait_id"] for wait in chain]
        return {"waits": waits, "chains": chains}

    def _chosen(self, events: pa.Table) -> dict[str, list[int]]:
        """Return the indexes of the events on the objects that the page begins with.

        The key is the text of the filter. The page in a file cannot look up the names in it.
        """
        text = self._viewer.begins_with.get("on", "")
        if not text:
            return {}
        chosen = self._events(text)["position"]
        return {text: np.flatnonzero(pc.is_in(events["position"], value_set=chosen)).tolist()}

    def _events(self, on: str = "") -> pa.Table:
        """Return the first events of the part, on all objects or on chosen objects."""
        parts: list[pa.Table] = []
        position, count = "", 0
        while count < MAX_EVENTS:
            self._go_on()
            part = self._viewer.events(
                position=position, t_ns=self._from, direction="forward", count=5000, thread=[],
                object=[], event="", site="", pid="", tid="", on=on, text="", readings="shown",
            )  # fmt: skip
            metadata = part.schema.metadata or {}
            part = part.filter(pc.less(part["ts_ns"], self._to))
            parts.append(part)
            count += part.num_rows
            position = metadata.get(b"next", b"").decode()
            if metadata.get(b"done") == b"1" or not position or not part.num_rows:
                break
        return _joined(parts).slice(0, MAX_EVENTS)

    def _findings(self) -> protocol.Findings:
        answer: protocol.Findings = self._wait(self._viewer.findings)
        pairs = [
            (finding, rows)
            for finding, rows in zip(answer["findings"], answer["rows"], strict=True)
            if self._is_whole or self._from <= finding["ts_ns"] < self._to
        ]
        return {
            **answer,
            "findings": [finding for finding, _ in pairs],
            "rows": [rows for _, rows in pairs],
        }


def _ready(viewer: Viewer) -> protocol.TraceInfo:
    """Return the answer of `trace`, after the viewer has read the whole trace."""
    trace = viewer.trace()
    if trace["follow"] and trace["state"] == "running":
        raise UsageError("the recording goes on: wait until it has ended")
    if trace["detail"]["error"]:
        raise PttError(trace["detail"]["error"])
    if not trace["detail"]["ready"]:
        raise NotReady(trace["detail"]["progress"])
    return trace


def _parts(rows: list[int]) -> Iterator[list[int]]:
    """Yield lists of rows. Each list is short enough to be drawn at full detail at once."""
    step = protocol.MAX_DRAWN // protocol.MAX_WIDTH
    for at in range(0, max(len(rows), 1), step):
        yield rows[at : at + step]


def _joined(tables: Any) -> pa.Table:
    return pa.concat_tables([table.replace_schema_metadata(None) for table in tables])


def _merged(spans: pa.Table) -> bool:
    flags = spans["flags"].to_numpy()
    return bool((flags & protocol.FLAGS["merged"]).any())


def _packed(value: Any) -> bytes:
    """Return a table as an Arrow stream, anything else as JSON, compressed."""
    data = protocol.stream(value) if isinstance(value, pa.Table) else presentable_json(value)
    return gzip.compress(data, 6, mtime=0)
