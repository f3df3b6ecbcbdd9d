"""Tables that are kept for later: small ones in memory, others in a temporary file."""

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
    """Takes pieces of one table, and gives them back as a whole.

    What does not fit into memory is read from a file as it lies there: the system takes back what
    it needs. Where there is no file to be had, everything stays in memory; where the file cannot
    grow, it is not tried whether memory can.

    Args:
        in_memory: How many bytes to keep in memory.
    """

    def __init__(self, in_memory: int = _IN_MEMORY) -> None:
        self._left = in_memory
        self._pieces: list[pa.Table] = []
        self._file: IO[bytes] | None = None
        self._writer: pa.RecordBatchStreamWriter | None = None

    def add(self, piece: pa.Table) -> None:
        """Take the next rows in.

        Raises:
            PttError: There is no room for them in the file.
        """
        self._left -= piece.nbytes
        if self._writer is None and (self._left >= 0 or not self._begin_file(piece.schema)):
            self._pieces.append(piece)
            return
        assert self._writer is not None  # noqa: S101 -- begun above
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
        """Say what to do where the file cannot be written."""
        try:
            yield
        except OSError as error:
            if self._file is not None:
                with suppress(OSError):  # it still has what could not be written
                    self._file.close()
            import tempfile

            raise PttError(
                f"cannot write a temporary table in {tempfile.gettempdir()}: "
                f"{error.strerror or error}; set TMPDIR to a directory with more room"
            ) from None

    def table(self) -> pa.Table:
        """Return all rows; nothing is added any more.

        Raises:
            PttError: There is no room for the last of them in the file.
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
