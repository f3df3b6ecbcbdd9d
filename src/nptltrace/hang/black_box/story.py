"""Tells from a black box which locks the threads hold, and what they did last."""

from __future__ import annotations

import json
import re
import tempfile
from collections import deque
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from nptltrace.analysis.model import model_batches
from nptltrace.errors import PttError
from nptltrace.hang.black_box import find_box
from nptltrace.hang.black_box.memory import DamagedBox, read_box
from nptltrace.hang.black_box.saved import save
from nptltrace.hang.thread_picture import Did, Held
from nptltrace.trace.code.call_site import stack_sites
from nptltrace.trace.printing import Printer
from nptltrace.trace.selection import Selection
from nptltrace.trace.symbols.frames import stack_texts
from nptltrace.trace.symbols.lookup import Symbols
from nptltrace.trace.traceset import Traceset

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from nptltrace.hang.black_box.memory import Box
    from nptltrace.hang.picture import Picture
    from nptltrace.hang.stack.names import Names
    from nptltrace.hang.targets.target import Target
    from nptltrace.hang.thread_picture import ThreadPicture

__all__ = ["Story", "tell", "with_box", "with_story"]

# The number of events that are shown of each thread.
_RECENT = 16
_GIGA = 10**9
_BEGIN = re.compile(rb'\{"ts_ns": (\d+), "pid": \d+, "tid": (\d+),')
# The kinds of waits for objects with an owner, and the kinds of these objects in the box. An object
# of another kind at the same address is older: the program has used its memory again.
_KINDS = {"mutex": "mutex", "rwlock": "rwlock", "lock": "mutex", "spin lock": "spinlock"}


class Story(NamedTuple):
    """What a black box tells about the threads of a process, by their ids in its PID namespace.

    Attributes:
        held: The locks that threads hold, in the order of time.
        recent: The last events, in the order of time.
    """

    held: Mapping[int, tuple[Held, ...]]
    recent: Mapping[int, tuple[Did, ...]]


def tell(
    box: Box,
    process: Target,
    open_symbols: Callable[[Traceset], Symbols],
    saved: Path | None = None,
) -> Story:
    """Return the locks and the last events of the threads in a black box.

    Args:
        box: The black box.
        process: Its process.
        open_symbols: Returns names for the addresses in a trace.
        saved: The trace that `save` has made of the box; None: there is no trace yet.

    Raises:
        PttError: There is no room for a temporary trace.
    """
    try:
        with ExitStack() as stack:
            if saved is None:
                temporary = tempfile.TemporaryDirectory(prefix="ptt-box-")
                saved = Path(stack.enter_context(temporary)) / "box.ptt"
                save(box, process, saved)
            source = Traceset(saved)
            symbols = open_symbols(source)
            end_ns = _end_ns(box, source)
            # An event that is missing may be the release.
            whole = {life.tid for life in box.lives if life.is_whole and not life.has_ended}
            held = _held(source, symbols, end_ns, whole)
            recent = _recent(source, symbols, end_ns, {life.tid for life in box.lives})
    except OSError as error:
        why = error.strerror or error
        raise PttError(f"the black box of {process.title} was not read: {why}") from error
    return Story(held, recent)


def _end_ns(box: Box, source: Traceset) -> int:
    """Return the time of the look, or of the last event of a core file."""
    last = source.end_ns() or 0
    if box.looked_at is None:
        return last
    frequency = source.alignment.placements[0].frequency
    elapsed = box.looked_at - box.head.start_clock
    return max(last, elapsed * _GIGA // max(1, frequency))


def _held(
    source: Traceset, symbols: Symbols, end_ns: int, whole: Collection[int]
) -> dict[int, tuple[Held, ...]]:
    """Return the holds that have not ended, of threads with all their events."""
    rows: list[dict[str, Any]] = []
    kinds: dict[int, str] = {}
    for name, table in model_batches(source, ("holds",), edges=False):
        if name == "holds" and table.num_rows:
            rows += table.filter(table["open"]).to_pylist()
        elif name == "objects":
            part = table.select(["lock_id", "kind"]).to_pydict()
            kinds = dict(zip(part["lock_id"], part["kind"], strict=True))
    held: dict[int, list[Held]] = {}
    for row in sorted(rows, key=lambda row: row["t_ns"]):
        if row["tid"] not in whole:
            continue
        stacks = source.processes[row["process"]].stacks
        site = symbols.site_name(row["process"], row["site"]) if row["site"] else ""
        sites = stack_sites(stacks, row["stack"]) if row["stack"] else []
        stack = stack_texts(symbols, row["process"], sites, row["site"]) if sites else [site]
        held.setdefault(row["tid"], []).append(
            Held(
                row["object"],
                symbols.object_name(row["process"], row["object"]),
                str(kinds.get(row["lock_id"], "")),
                end_ns - row["t_ns"],
                site,
                tuple(stack),
                is_shared=row["mode"] == "shared",
            )
        )
    return {tid: tuple(holds) for tid, holds in held.items()}


def _recent(
    source: Traceset, symbols: Symbols, end_ns: int, tids: Collection[int]
) -> dict[int, tuple[Did, ...]]:
    """Return the last events of each thread."""
    last: dict[int, deque[bytes]] = {tid: deque(maxlen=_RECENT) for tid in tids}

    def write(lines: memoryview) -> None:
        for line in bytes(lines).splitlines():
            if found := _BEGIN.match(line):
                last.setdefault(int(found[2]), deque(maxlen=_RECENT)).append(line)

    Printer(source, symbols, Selection(), style="jsonl", write=write).run()
    return {tid: tuple(_did(line, end_ns) for line in lines) for tid, lines in last.items()}


def _did(line: bytes, end_ns: int) -> Did:
    event = json.loads(line)
    return Did(
        end_ns - event["ts_ns"],
        event["event"],
        int(str(event.get("object") or "0"), 16),
        str(event.get("object_name") or ""),
        str(event.get("site_name") or ""),
    )


def with_box(process: Target, names: Names, picture: Picture) -> Picture:
    """Return a picture with what the black box tells, if the process has a box.

    Args:
        process: The process.
        names: The names in the process.
        picture: A picture of its threads that was made just now.
    """
    if find_box(process) is None:
        return picture
    try:
        box = read_box(process, names)
    except DamagedBox:
        return picture._replace(black_box="damaged")
    if box is None:
        return picture
    try:
        return with_story(picture, tell(box, process, Symbols))
    except PttError:
        return picture._replace(black_box="unread")


def with_story(picture: Picture, story: Story) -> Picture:
    """Return a picture with what the black box tells about its threads.

    The memory tells the owners of some locks; the black box tells the owners of others.
    """
    threads = [
        seen._replace(
            held=story.held.get(seen.thread.inner_tid, ()),
            recent=story.recent.get(seen.thread.inner_tid, ()),
        )
        for seen in picture.threads
    ]
    # A look at the waits may know the name of an object that is no variable.
    names = {w.wait.object: w.object_name for w in threads if w.wait is not None and w.object_name}
    threads = [
        seen._replace(
            held=tuple(
                hold if hold.name else hold._replace(name=names.get(hold.object, ""))
                for hold in seen.held
            )
        )
        for seen in threads
    ]
    by_object: dict[int, list[tuple[ThreadPicture, Held]]] = {}
    for seen in threads:
        for hold in seen.held:
            by_object.setdefault(hold.object, []).append((seen, hold))
    shown = tuple(_with_owner(seen, by_object) for seen in threads)
    return picture._replace(threads=shown, black_box="read")


def _with_owner(
    seen: ThreadPicture, by_object: Mapping[int, list[tuple[ThreadPicture, Held]]]
) -> ThreadPicture:
    wait = seen.wait
    if wait is None or wait.owner or wait.free:
        return seen
    holders = [
        holder
        for holder, hold in by_object.get(wait.object, ())
        if hold.kind == _KINDS.get(wait.kind)
        # If the memory counts readers, the box must not know others.
        and (not wait.readers or hold.is_shared)
        and holder.thread.tid != seen.thread.tid
    ]
    if not holders or (wait.readers and len(holders) > wait.readers):
        return seen
    # A holder that waits itself keeps the others waiting, whatever the other holders do.
    waits = (holder for holder in holders if holder.wait is not None and holder.wait.owner)
    owner = next(waits, holders[0]).thread.inner_tid
    return seen._replace(wait=wait._replace(owner=owner))
