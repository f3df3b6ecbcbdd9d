"""Lines of text by the column: numbers and names put together for thousands of rows at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

__all__ = ["Ordered", "Words", "decimals", "digits", "joined"]

_THOUSANDTHS = pa.array([f".{n:03d}" for n in range(1000)])


def digits(numbers: NDArray[Any]) -> Any:
    """Return numbers as text."""
    return pc.cast(pa.array(np.ascontiguousarray(numbers)), pa.string())


def decimals(ns: NDArray[Any], places: int) -> tuple[Any, ...]:
    """Return columns that make times exact to the ns, in units of 10**`places` ns (3, 6 or 9)."""
    whole, columns = ns, []
    for _ in range(places // 3):
        columns.append(_THOUSANDTHS.take(pa.array((whole % 1000).astype(np.int16))))
        whole = whole // 1000
    first, *others = reversed(columns)
    return digits(whole), first, *(pc.utf8_slice_codeunits(column, 1) for column in others)


class Words:
    """Names by number.

    Args:
        names: The name of 0, 1, …
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = pa.array(list(names), pa.large_string())

    def of(self, numbers: NDArray[Any]) -> Any:
        """Return the names of numbers."""
        return self._names.take(pa.array(np.ascontiguousarray(numbers, np.int64)))


def joined(count: int, *columns: Any) -> Any:
    """Return rows, one after another, as a buffer.

    Args:
        count: How many rows.
        columns: Text by row, or one that is the same in all.
    """
    return _text(_rows(*columns)) if count else b""


class Ordered:
    """Rows of several shapes, put into one order."""

    def __init__(self) -> None:
        self._places: list[NDArray[np.int64]] = []
        self._rows: list[Any] = []

    def add(self, places: NDArray[Any], *columns: Any) -> None:
        """Add rows.

        Args:
            places: Which place each of them has; of one place the one added first comes first.
            columns: As in `joined`; one of them at least by row.
        """
        if len(places):
            self._places.append(places)
            self._rows.append(_rows(*columns))

    def text(self) -> Any:
        """Return all rows, one after another, as a buffer."""
        if not self._rows:
            return b""
        order = np.argsort(np.concatenate(self._places), kind="stable")
        return _text(pa.concat_arrays(self._rows).take(pa.array(order)))


def _rows(*columns: Any) -> Any:
    """Return columns joined row by row."""
    parts = [
        pa.scalar(column, pa.large_string())
        if isinstance(column, str)
        else column.cast(pa.large_string())
        for column in columns
    ]
    return pc.binary_join_element_wise(*parts, pa.scalar("", pa.large_string()))


def _text(rows: Any) -> Any:
    """Return the text of rows without what lies between."""
    offsets = np.frombuffer(rows.buffers()[1], np.int64)[rows.offset :]
    return rows.buffers()[2][int(offsets[0]) : int(offsets[len(rows)])]
