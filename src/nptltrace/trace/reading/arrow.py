"""Converts arrays of NumPy to Arrow and back, without the functions that import pandas."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

__all__ = ["numbers", "texts", "unsigned", "values"]


def numbers(values: NDArray[Any], valid: NDArray[Any] | None = None) -> Any:
    """Return an Arrow array over the memory of a NumPy array; null where `valid` is false."""
    bits = None
    if valid is not None and not valid.all():
        bits = pa.py_buffer(np.packbits(valid, bitorder="little"))
    kind = pa.from_numpy_dtype(values.dtype)
    return pa.Array.from_buffers(kind, len(values), [bits, pa.py_buffer(values)])


def unsigned(values: Iterable[int]) -> Any:
    """Return an Arrow array of type uint32."""
    return numbers(np.fromiter(values, np.uint32))


def texts(values: Sequence[str]) -> Any:
    """Return an Arrow array of strings."""
    encoded = [value.encode() for value in values]
    offsets = np.fromiter(accumulate(map(len, encoded), initial=0), np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.string(), len(encoded), buffers)


def values(array: Any) -> NDArray[Any]:
    """Return a NumPy array over the memory of an Arrow array. Nulls have undefined values."""
    dtype = np.dtype(array.type.to_pandas_dtype())  # a dtype of NumPy, in spite of the name
    if not len(array):
        return np.empty(0, dtype)
    return np.frombuffer(array.buffers()[1], dtype, len(array), array.offset * dtype.itemsize)
