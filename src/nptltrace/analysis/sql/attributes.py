"""Attributes of objects and scheduling policies of threads, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["init_attributes", "policies"]

# The numbers of Linux and of the C library.
_POLICIES = {0: "other", 1: "fifo", 2: "rr", 3: "batch", 5: "idle", 6: "deadline"}
_MUTEX_KINDS = ("normal", "recursive", "errorcheck", "adaptive")
_PROTOCOLS = ("", "inherit", "protect")
_PREFERENCES = ("prefer-reader", "prefer-writer", "prefer-writer-nonrecursive")
_CLOCKS = {0: "realtime", 1: "monotonic"}


def _word(words: tuple[str, ...], number: int) -> str:
    return words[number] if number < len(words) else str(number)


def _attributes(kind: str, attributes: int) -> str:
    match kind:
        case "mutex":
            kind_of, protocol = attributes & 255, attributes >> 8 & 255
            robust = "robust" if attributes >> 16 & 255 else ""
            words = _word(_MUTEX_KINDS, kind_of), _word(_PROTOCOLS, protocol), robust
            return " ".join(filter(None, words))
        case "rwlock":
            return _word(_PREFERENCES, attributes)
        case "cond":
            return _CLOCKS.get(attributes, f"clock={attributes}")
        case "barrier":
            return f"count={attributes}"
        case "semaphore":
            return f"value={attributes}"
    return ""


def init_attributes(kinds: pa.Array, attributes: NDArray[Any], made: NDArray[Any]) -> pa.Array:
    """Return the attributes of objects as text, in a dictionary array.

    Args:
        kinds: Kinds of the objects, a dictionary array.
        attributes: Attributes of each object as numbers of the model.
        made: Whether the initialization of each object is in the trace; otherwise null.
    """
    kind = np.asarray(kinds.indices).astype(np.uint64)
    keys, places = np.unique(kind << np.uint64(32) | attributes, return_inverse=True)
    names = kinds.dictionary.to_pylist()
    words = [_attributes(names[int(key >> 32)], int(key & 0xFFFFFFFF)) for key in keys.tolist()]
    codes = pa.array(places.astype(np.int32), mask=~made)
    return pa.DictionaryArray.from_arrays(codes, pa.array(words, pa.string()))


def policies(numbers: NDArray[Any], known: NDArray[Any]) -> pa.Array:
    """Return scheduling policies in words, as a dictionary array; null if they are unknown."""
    keys, places = np.unique(numbers, return_inverse=True)
    words = [_POLICIES.get(key, str(key)) for key in keys.tolist()]
    codes = pa.array(places.astype(np.int32), mask=~known)
    return pa.DictionaryArray.from_arrays(codes, pa.array(words, pa.string()))
