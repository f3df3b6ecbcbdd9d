"""Keeps tables for later: small tables in memory, larger tables in a temporary file."""

from __future__ import annotations

import mmap
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

import pyarrow as pa

from nptltrace.errors import PttError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO

__all__ = ["Shelf"]

_IN_MEMORY = 16 << 20  # bytes of one table


class Shelf:
    """Takes pieces of one table, and returns them as a whole.

    Pieces beyond a limit are written to a file and mapped, so the system can evict their memory. If
    no file can be made, all pieces stay in memory. If the file cannot grow, that is an error:
    memory is not tried instead.

    Args:
        in_memory: Number of bytes to keep in memory.
    """

    def __init__(self, in_memory: int = _IN_MEMORY) -> None:
        self._left = in_memory
        self._pieces: list[pa.Table] = []
        self._file: IO[bytes] | None = None
        self._writer: pa.RecordBatchStreamWriter | None = None

    def add(self, piece: pa.Table) -> None:
        """Add the next rows.

        Raises:
            PttError: There is no room for them in the file.
        """
        self._left -= piece.nbytes
        if self._writer is None and (self._left >= 0 or not self._begin_file(piece.schema)):
            self._pieces.append(piece)
            return
        assert self._writer is not None  # noqa: S101 -- `_begin_file` made it
        with self._writing():
            self._writer.write_table(piece)

    def _begin_file(self, schema: pa.Schema) -> bool:
        import tempfile

        try:
            self._file = tempfile.TemporaryFile(prefix="ptt-table-")  # noqa: SIM115 -- closed below
        except OSError:
            return False
        self._writer = pa.ipc.new_stream(pa.PythonFile(self._file, "w"), schema)
        return True

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Explain an error while the file is written."""
        try:
            yield
        except OSError as error:
            if self._file is not None:
                with suppress(OSError):  # its buffer still has the unwritten bytes
                    self._file.close()
            import tempfile

            raise PttError(
                f"cannot write a temporary table in {tempfile.gettempdir()}: "
                f"{error.strerror or error}; set TMPDIR to a directory with more room"
            ) from None

    def table(self) -> pa.Table:
        """Return all rows. Call `add` no more after this.

        Raises:
            PttError: There is no room for the last rows in the file.
        """
        if self._writer is None or self._file is None:
            return pa.concat_tables(self._pieces)
        with ExitStack() as stack:
            stack.enter_context(self._file)
            with self._writing():
                self._writer.close()
                self._file.flush()
            memory = mmap.mmap(self._file.fileno(), 0, prot=mmap.PROT_READ)
        stored = pa.ipc.open_stream(pa.py_buffer(memory)).read_all()
        return pa.concat_tables([*self._pieces, stored])
