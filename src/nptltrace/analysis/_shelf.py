"""Tables that are kept for later: small ones in memory, others in a temporary file."""

from __future__ import annotations

import mmap
import tempfile
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from typing import IO

__all__ = ["Shelf"]

_IN_MEMORY = 16 << 20  # bytes of one table


class Shelf:
    """Takes pieces of one table, and gives them back as a whole.

    What does not fit into memory is read from a file as it lies there: the system takes back what
    it needs. Where there is no file to be had, everything stays in memory.

    Args:
        in_memory: How many bytes to keep in memory.
    """

    def __init__(self, in_memory: int = _IN_MEMORY) -> None:
        self._left = in_memory
        self._pieces: list[pa.Table] = []
        self._file: IO[bytes] | None = None
        self._writer: pa.RecordBatchStreamWriter | None = None

    def add(self, piece: pa.Table) -> None:
        """Take the next rows in."""
        self._left -= piece.nbytes
        if self._writer is None and (self._left >= 0 or not self._begin_file(piece.schema)):
            self._pieces.append(piece)
            return
        assert self._writer is not None  # noqa: S101 -- begun above
        self._writer.write_table(piece)

    def _begin_file(self, schema: pa.Schema) -> bool:
        try:
            self._file = tempfile.TemporaryFile(prefix="ptt-table-")  # noqa: SIM115 -- closed below
        except OSError:
            return False
        self._writer = pa.ipc.new_stream(pa.PythonFile(self._file, "w"), schema)
        return True

    def table(self) -> pa.Table:
        """Return all rows; nothing is added any more."""
        if self._writer is None or self._file is None:
            return pa.concat_tables(self._pieces)
        with ExitStack() as stack:
            stack.enter_context(self._file)
            self._writer.close()
            self._file.flush()
            memory = mmap.mmap(self._file.fileno(), 0, prot=mmap.PROT_READ)
        stored = pa.ipc.open_stream(pa.py_buffer(memory)).read_all()
        return pa.concat_tables([*self._pieces, stored])
