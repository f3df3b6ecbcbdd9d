"""Snapshots of the model's state at intervals, so that windows of large traces begin fast.

They are kept in the user's own cache, for the native library relies on what they say: those that
came with a trace from somebody else would have to be distrusted. A file is of one traceset as it
was, and of one build; any other is passed over, and all of them can be created again.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

from nptltrace._cache import cache_directory, shrink
from nptltrace._dataclasses import dataclass
from nptltrace._version import __version__
from nptltrace.trace.filtered import whole_filter

if TYPE_CHECKING:
    from nptltrace._binding import libptttrack_sums
    from nptltrace.trace.traceset import Traceset

__all__ = ["Keeper", "State", "forget", "latest"]

# Fewer events are read in no time.
_EVENTS = 1 << 21
_COUNT = 32
_FILE_MAX = 256 << 20


@dataclass(frozen=True, slots=True)
class State:
    """What went on at a place in a trace.

    Attributes:
        ts_ns: The time of the last event before the place.
        same: How many events before the place have this time.
        data: For `Model.load`.
    """

    ts_ns: int
    same: int
    data: bytes


def latest(source: Traceset, before_ns: int) -> State | None:
    """Return the last state of a traceset before a time; None where none is kept."""
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
    """Remove what is kept of a traceset: it is damaged."""
    place = _place(source)
    if place is not None:
        with suppress(OSError):
            place.unlink()


class Keeper:
    """Keeps states while a traceset is read from its beginning.

    Args:
        source: The opened traces.
        model: Sees all events of them, and counts everything.

    Attributes:
        wanted: Whether the traceset is large, and has none yet.
    """

    def __init__(self, source: Traceset, model: libptttrack_sums.Model) -> None:
        self._model = model
        self._place = _place(source)
        self._every = max(_total(source) // _COUNT, 1)
        self._seen = self._kept = self._ts = self._same = 0
        self._index: list[dict[str, int]] = []
        self._file: Any = None
        self.wanted = self._place is not None and not self._place.exists()

    def saw(self, ts: Any) -> None:
        """Go on behind events that the model was fed: their times, before anything was left out."""
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

            self._file = tempfile.NamedTemporaryFile(  # noqa: SIM115 -- closed when all is kept
                dir=self._place.parent, prefix="."
            )
        offset = self._file.tell()
        if offset > _FILE_MAX:
            return
        size = self._model.save(self._file.fileno())
        self._file.seek(0, os.SEEK_END)
        one = {"ts_ns": self._ts, "same": self._same, "offset": offset, "size": size}
        self._index.append(one)

    def finish(self) -> None:
        """Give what was kept its name; nothing more is kept."""
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
        """Keep nothing."""
        self.wanted = False
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
            self._file = None


def _total(source: Traceset) -> int:
    return sum(source.reader.trace_info(trace.number).events for trace in source.traces)


def _place(source: Traceset) -> Path | None:
    """Return where the states of a traceset are kept, None for one that has none."""
    if source.running or _total(source) < _EVENTS or source.before() or whole_filter(source):
        return None
    cache = cache_directory("states")
    return cache and cache / source.identity(__version__).hex()
