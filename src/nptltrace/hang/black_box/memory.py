"""Reads the black box in the memory of a process or in a core file; `ptt_abi.h` has the layout.

Whatever stands there may be damaged, or may change while it is read. Nothing counts that has not
been checked against its neighbours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from nptltrace._binding.arrays import Struct, size_of, struct_of
from nptltrace._binding.headers import ptt_abi as c
from nptltrace._binding.libpttcollect import read_clock
from nptltrace._dataclasses import replace
from nptltrace._paths import handlers_dir
from nptltrace._units import plural
from nptltrace.errors import PttError
from nptltrace.hang.black_box import find_box

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nptltrace.hang.stack.names import Names
    from nptltrace.hang.targets.target import Target

    Words = NDArray[np.uint64]

__all__ = ["Box", "DamagedBox", "Life", "Piece", "has_box", "read_box"]

_ROOT = "__nptl_trace_black_box"
_ROOT_MAGIC, _SEGMENT_MAGIC = b"PTTBBOX1", b"PTTSEGM2"
_CHUNK_MIN, _CHUNK_MAX = 8192, 1 << 20
# No table of a box is larger: the entries of all threads, and a word for each chunk.
_TABLES_MAX = 16 << 20
_PAGE, _PIECE = 4096, 1 << 20
_OWNED, _FULL = c.PTT_CHUNK_OWNED, c.PTT_CHUNK_FULL
_CHANGES, _ADDRESS_BITS = 0x3FFF, 47
_STALE = 1 << 62
_ADDRESS = (1 << 48) - 1
_STACK_FIRST = 3
# PTT_STACK_DEPTH_MAX: damaged entries may lead in a circle.
_DEPTH = 64

_Struct = TypeVar("_Struct", bound=Struct)


class DamagedBox(PttError):  # noqa: N818 -- the name is a sentence
    """The memory is no sound black box; the message says why."""


class Piece(NamedTuple):
    """Events of a thread in sequence.

    Attributes:
        t_base: The time of the clock before the first event.
        slots: The slots, two words each, as `struct ptt_slot`.
    """

    t_base: int
    slots: Words


class Life(NamedTuple):
    """The newest events of a thread.

    Attributes:
        tid: The id of the thread in the PID namespace of the process.
        has_ended: The thread has ended.
        is_whole: No event is missing from the first piece until the look.
        pieces: The events, in the order of time.
    """

    tid: int
    has_ended: bool
    is_whole: bool
    pieces: tuple[Piece, ...]


class Box(NamedTuple):
    """A consistent copy of a black box.

    Attributes:
        pid: The process in its own PID namespace.
        ppid: The parent of the process when the box began.
        head: The head of the segment.
        start: The time of the clock when the process began to record.
        lives: The threads with events.
        sites: The addresses of the call sites in the events, by their numbers.
        stacks: Number, number of the caller's stack, and address; callers first.
        lost_threads: Events of threads that had no room at all.
        looked_at: The time of the clock at the look; None in a core file.
        remarks: Sentences about missing events.
    """

    pid: int
    ppid: int
    head: c.Segment
    start: int
    lives: tuple[Life, ...]
    sites: dict[int, int]
    stacks: list[tuple[int, int, int]]
    lost_threads: int
    looked_at: int | None
    remarks: tuple[str, ...]


def read_box(process: Target, names: Names) -> Box | None:
    """Return the black box of a process, or None if the process has no box.

    Args:
        process: The process.
        names: The names in the process.

    Raises:
        DamagedBox: The memory of the box makes no sense, or is not in the core file.
    """
    place = _place(process, names)
    if not place:
        return None
    root = _struct(process, place, c.BlackBox)
    if root is None:
        raise DamagedBox("its memory is missing")
    if not root.segment and not any(bytes(root.abi.magic)):
        return None
    if root.abi.magic != _ROOT_MAGIC or root.abi.major != c.PTT_ABI_MAJOR:
        raise DamagedBox("it is not of this version, or overwritten")
    return _Reader(process, root).box() if root.segment else None


def has_box(process: Target, names: Names) -> bool:
    """Return whether a process keeps its newest events in a black box."""
    place = _place(process, names)
    root = _struct(process, place, c.BlackBox) if place else None
    return root is not None and bool(root.segment)


def _place(process: Target, names: Names) -> int:
    """Return the address of the root, 0 if there is none."""
    module = find_box(process)
    if module is None:
        return 0
    # The mapped file may be gone; our own file is the same if it has the same build-id.
    own = replace(module, path=str(handlers_dir() / module.path.rpartition("/")[2]))
    exported = names.exported(module, _ROOT) or names.exported(own, _ROOT)
    return exported.start if exported else 0


def _struct(process: Target, address: int, kind: type[_Struct]) -> _Struct | None:
    data = process.read(address, size_of(kind))
    return struct_of(kind, data) if len(data) == size_of(kind) else None


class _Look(NamedTuple):
    """The tables and chunks at one moment, roughly.

    Attributes:
        states: The states of the chunks.
        owners: The owners of the thread entries.
        entries: The thread entries.
        chunks: The memory of chunks in use, by their numbers.
    """

    states: NDArray[np.uint32]
    owners: NDArray[np.uint32]
    entries: list[c.Thread]
    chunks: dict[int, bytes]


class _Reader:
    """Reads the box of a process.

    Args:
        process: The process.
        root: The root of the box.
    """

    def __init__(self, process: Target, root: c.BlackBox) -> None:
        self._process, self._root = process, root
        head = _struct(process, root.segment, c.Segment)
        if head is None:
            raise DamagedBox("its memory is missing")
        self._head, self._base = head, root.segment
        self._pages: dict[int, bytes] = {}
        self._remarks: dict[str, None] = {}
        self._check_head()

    def _check_head(self) -> None:
        head = self._head
        size, count = head.chunk_size, head.chunk_count
        tables = (
            (head.process_offset, 40), (head.thread_owner_offset, 4 * head.thread_count),
            (head.thread_offset, 128 * head.thread_count), (head.chunk_state_offset, 4 * count),
        )  # fmt: skip
        sound = (
            head.abi.magic == _SEGMENT_MAGIC
            and head.abi.major == c.PTT_ABI_MAJOR
            and head.box == 1
            and head.process_count == 1
            and _CHUNK_MIN <= size <= _CHUNK_MAX
            and size & size - 1 == 0
            and 0 < head.thread_count <= c.PTT_THREAD_COUNT_MAX
            and 0 < head.chunks_there <= count <= c.PTT_BOX_MEMORY_MAX // _CHUNK_MIN
            and count * size <= c.PTT_BOX_MEMORY_MAX
            and all(at >= 384 and at + length <= head.chunk_offset for at, length in tables)  # noqa: PLR2004 -- bytes of the head
            and head.chunk_offset <= _TABLES_MAX
            and head.clock in {c.PTT_CLOCK_TSC, c.PTT_CLOCK_MONOTONIC}
            and self._base + head.chunk_offset + count * size < 1 << 63
        )
        if not sound:
            raise DamagedBox("its head makes no sense")

    def box(self) -> Box:
        head, runs = self._head, self._process.has_own_time
        process = _struct(self._process, self._base + head.process_offset, c.Process)
        if process is None or not self._is_ours(process.pid):
            raise DamagedBox("it belongs to another process")
        now = read_clock(head.clock).clock if runs else None
        first = self._look()
        second = self._look_again(first) if runs else first
        lives = tuple(self._lives(first, second, now))
        sites, stacks = self._numbers(lives)
        lost_threads = int(process.lost_threads)
        if lost_threads:
            self._remarks["threads without room in the black box are not in it"] = None
        return Box(
            process.pid, process.ppid, head, process.start, lives, sites, stacks, lost_threads, now,
            tuple(self._remarks),
        )  # fmt: skip

    def _is_ours(self, pid: int) -> bool:
        """Return whether the box says that it belongs to this process, and not to its parent."""
        tids = {tid for thread in self._process.threads() for tid in (thread.tid, thread.inner_tid)}
        return pid in tids or pid == self._process.pid

    # ---- one look ------------------------------------------------------------------------------

    def _read(self, offset: int, size: int) -> bytes:
        """Return a part of the segment; zeros stand for missing bytes."""
        parts = []
        for at in range(offset, offset + size, _PIECE):
            length = min(_PIECE, offset + size - at)
            data = self._process.read(self._base + at, length)
            if len(data) < length:
                self._remarks["a part of the black box is missing"] = None
            parts.append(data.ljust(length, b"\0"))
        return b"".join(parts)

    def _look(self) -> _Look:
        head = self._head
        high = _struct(self._process, self._base, c.Segment)
        threads = min(high.thread_high if high else 0, head.thread_count)
        there = min(high.chunks_there if high else 0, head.chunk_count)
        states = self._states(there)
        owners = np.frombuffer(self._read(head.thread_owner_offset, 4 * threads), np.uint32)
        data = self._read(head.thread_offset, 128 * threads)
        entries = [struct_of(c.Thread, data, 128 * i) for i in range(threads)]
        used = np.flatnonzero(np.isin(states & 3, (_OWNED, _FULL)))
        return _Look(states, owners, entries, self._chunks(used))

    def _look_again(self, first: _Look) -> _Look:
        """Look at the same chunks again.

        The first look reads the states before the chunks, this look reads them behind. If a state
        is the same, the chunk had one owner all the time, who changes no slot that is written.
        """
        chunks = self._chunks(np.array(sorted(first.chunks), np.int64))
        return first._replace(states=self._states(len(first.states)), chunks=chunks)

    def _states(self, count: int) -> NDArray[np.uint32]:
        return np.frombuffer(self._read(self._head.chunk_state_offset, 4 * count), np.uint32)

    def _chunks(self, used: NDArray[np.int64]) -> dict[int, bytes]:
        """Return the memory of chunks, by their numbers."""
        head = self._head
        chunks: dict[int, bytes] = {}
        size, most = head.chunk_size, max(1, _PIECE // head.chunk_size)
        for group in np.split(used, np.flatnonzero(np.diff(used) != 1) + 1):
            for begin in range(0, len(group), most):
                part = group[begin : begin + most]
                data = self._read(head.chunk_offset + int(part[0]) * size, len(part) * size)
                for n, index in enumerate(part):
                    chunks[int(index)] = data[n * size : (n + 1) * size]
        return chunks

    # ---- two looks compared --------------------------------------------------------------------

    def _lives(self, first: _Look, second: _Look, now: int | None) -> list[Life]:
        """Return the threads, from all chunks that did not change between the looks."""
        by_entry: dict[int, list[tuple[int, int, bytes, int]]] = {}
        for index, data in first.chunks.items():
            state, later = int(first.states[index]), int(second.states[index])
            entry = state >> 2 & 0x7FFF
            # A chunk that its thread has left meanwhile is FULL, with the same change.
            if entry >= len(first.entries) or state >> 2 != later >> 2 or later & 3 < state & 3:
                continue
            chunk = struct_of(c.Chunk, data)
            if struct_of(c.Chunk, second.chunks[index]).serial == chunk.serial:
                by_entry.setdefault(entry, []).append((chunk.serial, index, data, state))
        lives: list[Life] = []
        for entry, found in sorted(by_entry.items()):
            found.sort()
            lives += self._lives_of(entry, found, first, second, now)
        used = {int(state) >> 2 & 0x7FFF for state in first.states if state & 3 in {_OWNED, _FULL}}
        missed = len(used - by_entry.keys())
        if missed:
            threads = plural(missed, "thread")
            self._remarks[f"the events of {missed} {threads} changed while they were read"] = None
        return lives

    def _lives_of(
        self,
        entry: int,
        found: list[tuple[int, int, bytes, int]],
        first: _Look,
        second: _Look,
        now: int | None,
    ) -> list[Life]:
        """Return the threads that had an entry, the newest last."""
        thread = first.entries[entry]
        head_changes, at = thread.head >> 40, thread.head & c.PTT_HEAD_OFFSET_MASK
        newest_state = found[-1][3]
        newest = newest_state >> 17 & _CHANGES
        in_chunk = bool(at & self._head.chunk_size - 1)
        # The newest chunk is the one that the thread writes now; or the thread has left it.
        current = newest == head_changes & _CHANGES
        if in_chunk:
            place = self._head.chunk_offset + found[-1][1] * self._head.chunk_size
            current &= place < at <= place + self._head.chunk_size
        whole = current and not thread.lost_full and not thread.lost_closed
        lives: list[Life] = []
        # Backwards from the newest: a gap ends what belongs together.
        pieces: list[Piece] = []
        serial, tid = found[-1][0], 0
        alive = bool(first.owners[entry]) and thread.state != c.PTT_THREAD_ENDED
        for number, index, data, _ in reversed(found):
            chunk = struct_of(c.Chunk, data)
            piece, is_sound = self._piece(chunk, data, second.chunks[index], now)
            if number != serial or not is_sound:
                whole = False
            if pieces and chunk.tid != tid:
                lives.append(Life(tid, not alive, whole, tuple(reversed(pieces))))
                pieces, alive, whole = [], False, False
            if number != serial:
                break
            serial, tid = number - 1, chunk.tid
            alive &= not lives and (bool(lives) or thread.tid == chunk.tid)
            if len(piece.slots):
                pieces.append(piece)
        if pieces:
            lives.append(Life(tid, not alive, whole, tuple(reversed(pieces))))
        return lives[::-1]

    def _piece(
        self, chunk: c.Chunk, data: bytes, later: bytes, now: int | None
    ) -> tuple[Piece, bool]:
        """Return the events of a chunk before the look, and whether none is missing between."""
        slots = np.frombuffer(data, np.uint64)[c.PTT_CHUNK_HEAD // 8 :].reshape(-1, 2)
        again = np.frombuffer(later, np.uint64)[c.PTT_CHUNK_HEAD // 8 :].reshape(-1, 2)
        ids = slots[:, 0] & c.PTT_ID_MASK
        ends = np.flatnonzero((ids == 0) | (ids == c.PTT_ID_END))
        count = int(ends[0]) if len(ends) else len(slots)
        # Behind a slot that nobody has written, a signal handler may have written others.
        sound = not len(ends) or ids[count] == c.PTT_ID_END or not ids[count:].any()
        # The first words were written at the first look. So the second look has whole slots.
        if not (slots[:count, 0] == again[:count, 0]).all():
            return Piece(chunk.t_base, slots[:0]), False
        slots, ids = again[:count], ids[:count]
        if now is not None and count:
            times = (slots[:, 0] >> np.uint64(c.PTT_TIME_SHIFT)) - np.uint64(chunk.t_base)
            times = (times & np.uint64(c.PTT_TIME_MASK)) + np.uint64(chunk.t_base)
            events = (ids != c.PTT_ID_MORE) & (ids != c.PTT_ID_STACK)
            late = np.flatnonzero(events & (times > np.uint64(now)))
            slots = slots[: late[0]] if len(late) else slots
        return Piece(chunk.t_base, slots), sound

    # ---- call sites and stacks -----------------------------------------------------------------

    def _numbers(
        self, lives: tuple[Life, ...]
    ) -> tuple[dict[int, int], list[tuple[int, int, int]]]:
        """Return the call sites and stacks that the events name."""
        sites: set[int] = set()
        wanted: set[int] = set()
        for piece in (piece for life in lives for piece in life.pieces):
            ids, second = piece.slots[:, 0] & c.PTT_ID_MASK, piece.slots[:, 1]
            events = (ids != c.PTT_ID_MORE) & (ids != c.PTT_ID_STACK)
            sites.update(map(int, np.unique(second[events] >> np.uint64(c.PTT_SITE_SHIFT))))
            wanted.update(map(int, np.unique(second[ids == c.PTT_ID_STACK])))
        addresses = {
            site: word & ~_STALE & _ADDRESS
            for site in sorted(sites - {0})
            if (word := self._word(self._root.sites, site, self._root.site_count))
        }
        stacks: dict[int, tuple[int, int]] = {}
        for stack in sorted(wanted):
            self._callers(stack, stacks)
        return addresses, [(number, *stacks[number]) for number in stacks]

    def _callers(self, stack: int, stacks: dict[int, tuple[int, int]]) -> None:
        """Put a stack into the dictionary, behind the stacks of its callers."""
        chain: list[tuple[int, int, int]] = []
        while stack >= _STACK_FIRST and stack not in stacks:
            word = self._word(self._root.stacks, stack, self._root.stack_count)
            if not word or len(chain) >= _DEPTH:
                return
            address = word & (1 << _ADDRESS_BITS) - 1
            chain.append((stack, word >> _ADDRESS_BITS, address))
            stack = word >> _ADDRESS_BITS
        for number, caller, address in reversed(chain):
            stacks[number] = caller, address

    def _word(self, table: int, index: int, count: int) -> int:
        """Return an entry of a table; 0 if there is none."""
        if index >= min(count, c.PTT_STACK_COUNT):
            return 0
        place = table + 8 * index
        page = place & -_PAGE
        if page not in self._pages:
            self._pages[page] = self._process.read(page, _PAGE)
        return int.from_bytes(self._pages[page][place - page : place - page + 8], "little")
