"""Converts native columns of events to Arrow tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from nptltrace._binding import libpttread
from nptltrace._binding.headers.pttread import PTT_CPU_UNKNOWN
from nptltrace.catalog import BY_ID, EVENTS
from nptltrace.trace.reading.arrow import numbers, texts, unsigned, values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from nptltrace.trace.traceset import Traceset

__all__ = ["FIELD_NAMES", "ArrayBuffer", "Converter", "column_of_field", "with_words_that_occur"]

_DTYPES: dict[str, Any] = {
    "ts": np.int64,
    "thread": np.uint32,
    "id": np.uint16,
    "cpu": np.uint16,
    "object": np.uint64,
    "site": np.uint64,
    "payload": np.uint64,
    "stack": np.uint32,
    "reading": np.uint16,
}

# All fields of events, and whether they are text. Left out is the size before a text.
FIELD_NAMES: dict[str, bool] = {
    field.name: field.type == "bytes"
    for event in EVENTS
    for field in event.fields
    if not (
        event.fields[-1].type == "bytes"
        and len(event.fields) > 1
        and field is event.fields[-2]
    )
}  # fmt: skip


def column_of_field(name: str) -> str:
    """Return the name of the column of a field: its own name, but `target_pid` for `pid`."""
    return "target_pid" if name == "pid" else name


def with_words_that_occur(table: pa.Table) -> pa.Table:
    """Return a table without unused words in dictionaries, so that you can group by the words."""
    for at, column in enumerate(table.schema):
        if pa.types.is_dictionary(column.type):
            table = table.set_column(at, column, _with_used_words(table[column.name]))
    return table


def _with_used_words(column: pa.ChunkedArray) -> pa.Array:
    """Return a column with only the used words in its dictionary, in their order."""
    whole = column.unify_dictionaries().combine_chunks()
    if isinstance(whole, pa.ChunkedArray):  # older versions of Arrow return it
        whole = whole.chunk(0) if whole.num_chunks else pa.array([], whole.type)
    valid = whole.is_valid().to_numpy(zero_copy_only=False)
    indices = values(whole.indices.fill_null(0))
    used = np.flatnonzero(np.bincount(indices[valid], minlength=len(whole.dictionary)))
    places = np.zeros(max(len(whole.dictionary), 1), indices.dtype)
    places[used] = np.arange(len(used))
    words = whole.dictionary.take(pa.array(used))
    return pa.DictionaryArray.from_arrays(numbers(places[indices], valid), words)


class ArrayBuffer(libpttread.Buffer):
    """A buffer of columns in NumPy arrays, which Arrow tables share.

    Args:
        size: The most events that fit.

    Attributes:
        numpy: By name, the arrays, with shape (size,).
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.count = 0
        self.numpy: dict[str, NDArray[Any]] = {
            name: np.empty(size, dtype) for name, dtype in _DTYPES.items()
        }
        self.arrays = {}
        self.columns = libpttread.columns_at(
            {name: array.ctypes.data for name, array in self.numpy.items()}
        )

    def column(self, name: str) -> NDArray[Any]:
        """Return the filled part of a column, with shape (count,)."""
        return self.numpy[name][: self.count]


class Converter:
    """Makes Arrow tables from buffers of events.

    Args:
        source: The opened traces.
    """

    def __init__(self, source: Traceset) -> None:
        self._source = source
        names = list(dict.fromkeys(event.name for event in EVENTS))
        index = {name: number for number, name in enumerate(names)}
        event_of_id = np.full(1024, -1, np.int16)
        for number, event in BY_ID.items():
            event_of_id[number] = index[event.name]
        self._names, self._index = names, event_of_id
        self._event_of_id, self._event_names = numbers(event_of_id), texts(names)
        self._fields_of: dict[int, set[str]] = {
            number: {field.name for field in event.fields} for number, event in BY_ID.items()
        }
        self.renew()

    def renew(self) -> None:
        """Take in new threads."""
        processes = self._source.processes
        threads = self._source.thread_ids
        self._process = unsigned(process for process, _ in threads)
        self._tid = unsigned(tid for _, tid in threads)
        self._pid = unsigned(processes[process].pid for process, _ in threads)

    def table(self, buffer: ArrayBuffer, fields: Sequence[str] | None = None) -> pa.Table:
        """Return the events of a buffer. The table shares its memory: do not fill it again.

        Args:
            buffer: The events.
            fields: The fields of events to add as columns; None for all fields that occur.
        """
        ids, cpu = buffer.column("id"), buffer.column("cpu")
        # Arrow takes by small indices several times as fast as NumPy, which first widens them.
        thread, event_id = numbers(buffer.column("thread")), numbers(ids)
        which = self._event_of_id.take(event_id)
        if values(which).min(initial=0) < 0:
            self._learn(ids)
            which = self._event_of_id.take(event_id)
        event = pa.DictionaryArray.from_arrays(which, self._event_names, safe=False)
        columns: dict[str, Any] = {
            "ts_ns": numbers(buffer.column("ts")),
            "process": self._process.take(thread),
            "pid": self._pid.take(thread),
            "tid": self._tid.take(thread),
            "cpu": numbers(cpu, cpu != PTT_CPU_UNKNOWN),
            "event": event,
            "event_id": event_id,
            "object": numbers(buffer.column("object")),
            "site": numbers(buffer.column("site")),
            "stack": numbers(buffer.column("stack")),
        }
        if fields is None:
            used = {name for n in np.unique(ids) for name in self._fields_of.get(int(n), ())}
            fields = [name for name in FIELD_NAMES if name in used]
        for name in fields:
            columns[column_of_field(name)] = self._field(buffer, name)
        return pa.table(columns)

    def _learn(self, ids: NDArray[Any]) -> None:
        """Add names for events that the catalogue does not have."""
        for number in np.unique(ids):
            if self._index[number] < 0:
                self._index[number] = len(self._names)
                self._names.append(f"EVENT_{number}")
        self._event_of_id, self._event_names = numbers(self._index), texts(self._names)

    def _field(self, buffer: ArrayBuffer, name: str) -> Any:
        """Return a field of the events; null for events without the field."""
        if FIELD_NAMES.get(name):
            ids = [number for number, names in self._fields_of.items() if name in names]
            has = np.isin(buffer.column("id"), ids)
            texts_ = [
                text.decode("utf-8", "replace") if valid else None
                for text, valid in zip(libpttread.byte_strings(buffer, name), has, strict=True)
            ]
            return pa.array(texts_, pa.string())
        field = np.empty(buffer.count, np.int64)
        valid = np.empty(buffer.count, np.uint8)
        libpttread.field_column(buffer, name, field.ctypes.data, valid.ctypes.data)
        return numbers(field, valid)
