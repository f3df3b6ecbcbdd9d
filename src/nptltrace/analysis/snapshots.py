"""Snapshots of the model's state at intervals, so that windows of large traces begin fast.

The native library trusts the content of a snapshot. So snapshots are kept in the user's own cache,
and never beside a trace from somebody else. A file belongs to one state of one traceset and to one
build of PTT. Files can be removed at any time: PTT creates them again.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

from nptltrace._dataclasses import dataclass
from nptltrace._files.cache import cache_directory, shrink
from nptltrace._version import __version__
from nptltrace.trace.filtered import whole_filter

if TYPE_CHECKING:
    from nptltrace._binding import libptttrack_sums
    from nptltrace.trace.traceset import Traceset

__all__ = ["Keeper", "State", "forget", "latest"]

# Snapshots of a traceset with fewer events would save no noticeable time.
_EVENTS = 1 << 21
_COUNT = 32
_FILE_MAX = 256 << 20


@dataclass(frozen=True, slots=True)
class State:
    """The state of the model at a place in a trace.

    Attributes:
        ts_ns: Time of the last event before the place, in ns.
        same: Number of events before the place with this time.
        data: The state, for `Model.load`.
    """

    ts_ns: int
    same: int
    data: bytes


def latest(source: Traceset, before_ns: int) -> State | None:
    """Return the last kept state of a traceset before a time, in ns; None if there is none."""
    place = _place(source)
    try:
        return None if place is None else _read(place, before_ns)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, OverflowError):
        forget(source)
        return None


def _read(place: Path, before_ns: int) -> State | None:
    with place.open("rb") as file:
        if os.fstat(file.fileno()).st_uid != os.geteuid():
            return None
        file.seek(-8, os.SEEK_END)
        length = int.from_bytes(file.read(8), "little")
        file.seek(-8 - length, os.SEEK_END)
        index = file.read(length)
        crc = int.from_bytes(index[:4], "little")
        if crc != crc32(index[4:]):
            raise ValueError
        states = [state for state in json.loads(index[4:]) if state["ts_ns"] < before_ns]
        if not states:
            return None
        file.seek(states[-1]["offset"])
        data = file.read(states[-1]["size"])
        os.utime(file.fileno())
        return State(states[-1]["ts_ns"], states[-1]["same"], data)


def forget(source: Traceset) -> None:
    """Remove the file of a traceset, because it is damaged."""
    place = _place(source)
    if place is not None:
        with suppress(OSError):
            place.unlink()


class Keeper:
    """Writes snapshots while a model reads a traceset from its beginning.

    Args:
        source: The opened traces.
        model: The model. It sees all events, and counts everything.

    Attributes:
        wanted: Whether the traceset is large and has no snapshots yet.
    """

    def __init__(self, source: Traceset, model: libptttrack_sums.Model) -> None:
        self._model = model
        self._place = _place(source)
        self._every = max(_events(source) // _COUNT, 1)
        self._seen = self._kept = self._ts = self._same = 0
        self._index: list[dict[str, int]] = []
        self._file: Any = None
        self.wanted = self._place is not None and not self._place.exists()

    def saw(self, ts: Any) -> None:
        """Take in the times of the events that the model has seen, and write a snapshot if due.

        Args:
            ts: Times of all events of the batch, ascending.
        """
        if not self.wanted or not len(ts):
            return
        last = int(ts[-1])
        same = int(len(ts) - ts.searchsorted(last))
        self._same = same + (self._same if same == len(ts) and last == self._ts else 0)
        self._ts = last
        self._seen += len(ts)
        if self._seen - self._kept >= self._every:
            self._kept = self._seen
            try:
                self._keep()
            except OSError:
                self.drop()

    def _keep(self) -> None:
        assert self._place is not None  # noqa: S101
        if self._file is None:
            self._place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            import tempfile

            self._file = tempfile.NamedTemporaryFile(  # noqa: SIM115 -- `drop` closes it
                dir=self._place.parent, prefix="."
            )
        offset = self._file.tell()
        if offset > _FILE_MAX:
            return
        size = self._model.save(self._file.fileno())
        self._file.seek(0, os.SEEK_END)
        state = {"ts_ns": self._ts, "same": self._same, "offset": offset, "size": size}
        self._index.append(state)

    def finish(self) -> None:
        """Write the index, give the file its name, and stop."""
        if self._file is not None and self._place is not None:
            with suppress(OSError):
                text = json.dumps(self._index).encode()
                index = crc32(text).to_bytes(4, "little") + text
                self._file.write(index + len(index).to_bytes(8, "little"))
                self._file.flush()
                Path(self._file.name).replace(self._place)
                shrink(self._place.parent)
        self.drop()

    def drop(self) -> None:
        """Stop, and close the file; a file without its final name disappears."""
        self.wanted = False
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
            self._file = None


def _events(source: Traceset) -> int:
    return sum(source.reader.trace_info(trace.number).events for trace in source.traces)


def _place(source: Traceset) -> Path | None:
    """Return the file of a traceset's snapshots; None if the traceset has no snapshots."""
    if source.running or _events(source) < _EVENTS or source.before() or whole_filter(source):
        return None
    cache = cache_directory("states")
    return cache and cache / source.identity(__version__).hex()
