"""Sorts records by time, in bounded memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nptltrace._binding.handle import own

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

__all__ = ["Sorter", "in_order"]

_IN_MEMORY = 256 << 20  # bytes; further records go to a temporary file
_RUN = 1 << 16  # records


class Sorter:
    """Takes records that are nearly in order, and returns them in the order of `ts`.

    Records with equal times keep their order.

    Args:
        dtype: The type of the records, with a column `ts`.
        in_memory: The number of bytes to keep in memory.
    """

    def __init__(self, dtype: np.dtype[Any], in_memory: int = _IN_MEMORY) -> None:
        self._dtype = dtype
        self._left = in_memory
        self._file: Any = None
        self._waiting: list[NDArray[Any]] = []
        self._runs: list[NDArray[Any]] = []
        self._given: Iterator[NDArray[Any]] | None = None
        self._rest: NDArray[Any] | None = None

    def add(self, records: NDArray[Any]) -> None:
        """Add records."""
        if not len(records):
            return
        self._waiting.append(records)
        if sum(map(len, self._waiting)) >= _RUN:
            self._close_run()

    def _close_run(self) -> None:
        """Sort the waiting records into a run."""
        if not self._waiting:
            return
        run = in_order(self._waiting)
        self._waiting = []
        self._left -= run.nbytes
        self._runs.append(run if self._left >= 0 else self._stored(run))

    def _stored(self, run: NDArray[Any]) -> NDArray[Any]:
        import tempfile

        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="ptt-export-")  # noqa: SIM115 -- closed below
            own(self, self._file.close)
        offset = self._file.seek(0, 2)
        self._file.write(run.tobytes())
        self._file.flush()
        return np.memmap(self._file, self._dtype, "r", offset, run.shape)

    def until(self, ns: int) -> list[NDArray[Any]]:
        """Return the records up to a time that no earlier call returned. Ends the use of `add`."""
        if self._given is None:
            self._given = self.batches()
            self._rest = next(self._given, None)
        pieces = []
        while self._rest is not None and self._rest["ts"][0] <= ns:
            stop = int(np.searchsorted(self._rest["ts"], ns, side="right"))
            pieces.append(self._rest[:stop])
            left = self._rest[stop:]
            self._rest = left if len(left) else next(self._given, None)
        return pieces

    def batches(self) -> Iterator[NDArray[Any]]:
        """Yield all records in order."""
        self._close_run()
        runs = self._runs
        done = np.zeros(len(runs), np.int64)
        following = np.array([run["ts"][0] for run in runs], np.int64)
        # A late record may be much earlier than the rest of its run, but hardly ever later. So
        # about as many records as a run has lie between the ends of two runs.
        for bound in np.sort(np.array([run["ts"][-1] for run in runs], np.int64)):
            pieces = []
            for number in np.flatnonzero(following <= bound).tolist():
                run, start = runs[number], int(done[number])
                stop = start + int(np.searchsorted(run["ts"][start:], bound, side="right"))
                pieces.append(run[start:stop])
                done[number] = stop
                following[number] = run["ts"][stop] if stop < len(run) else np.iinfo(np.int64).max
            if pieces:
                yield in_order(pieces)


def in_order(pieces: list[NDArray[Any]]) -> NDArray[Any]:
    """Return all records in the order of time. Equal times keep the order of the pieces.

    NumPy concatenates and indexes structures field by field, but bytes as a whole. `take` copies
    structures as a whole, too.
    """
    dtype = pieces[0].dtype
    joined = np.concatenate([piece.view(np.uint8) for piece in pieces]).view(dtype)
    return joined.take(np.argsort(joined["ts"], kind="stable"))
