"""Lines of text from columns: thousands of rows of numbers and names at once, without a loop."""

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
    """Return columns that together are times with decimals, exact to the ns.

    Args:
        ns: The times in ns.
        places: The number of decimals, 3, 6 or 9: the unit is 10**`places` ns.
    """
    whole, columns = ns, []
    for _ in range(places // 3):
        columns.append(_THOUSANDTHS.take(pa.array((whole % 1000).astype(np.int16))))
        whole = whole // 1000
    first, *others = reversed(columns)
    return digits(whole), first, *(pc.utf8_slice_codeunits(column, 1) for column in others)


class Words:
    """Names by number.

    Args:
        names: The names of 0, 1, …
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = pa.array(list(names), pa.large_string())

    def of(self, numbers: NDArray[Any]) -> Any:
        """Return the names of numbers."""
        return self._names.take(pa.array(np.ascontiguousarray(numbers, np.int64)))


def joined(count: int, *columns: Any) -> Any:
    """Return the text of rows as a buffer.

    Args:
        count: The number of rows.
        columns: Texts by row, or a string that is the same in all rows.
    """
    return _text(_rows(*columns)) if count else b""


class Ordered:
    """Collects rows with different columns, and puts the rows in order."""

    def __init__(self) -> None:
        self._places: list[NDArray[np.int64]] = []
        self._rows: list[Any] = []

    def add(self, places: NDArray[Any], *columns: Any) -> None:
        """Add rows.

        Args:
            places: The place of each row. Rows of the same place keep the order of their addition.
            columns: As in `joined`; at least one has a text for each row.
        """
        if len(places):
            self._places.append(places)
            self._rows.append(_rows(*columns))

    def text(self) -> Any:
        """Return the text of all rows, in order, as a buffer."""
        if not self._rows:
            return b""
        order = np.argsort(np.concatenate(self._places), kind="stable")
        return _text(pa.concat_arrays(self._rows).take(pa.array(order)))


def _rows(*columns: Any) -> Any:
    """Return the texts of the rows."""
    parts = [
        pa.scalar(column, pa.large_string())
        if isinstance(column, str)
        else column.cast(pa.large_string())
        for column in columns
    ]
    return pc.binary_join_element_wise(*parts, pa.scalar("", pa.large_string()))


def _text(rows: Any) -> Any:
    """Return the part of the data buffer that holds the rows."""
    offsets = np.frombuffer(rows.buffers()[1], np.int64)[rows.offset :]
    return rows.buffers()[2][int(offsets[0]) : int(offsets[len(rows)])]
