"""Whether plain data has a shape that `protocol` declares."""

from __future__ import annotations

import types
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

__all__ = ["fits"]


def fits(shape: Any, value: Any) -> bool:
    """Return whether a value, as JSON has it, is of a type: plain ones, lists, dicts, shapes."""
    origin, args = get_origin(shape), get_args(shape)
    if origin is Literal:
        found = value in args
    elif origin in {Union, types.UnionType}:
        found = any(fits(part, value) for part in args)
    elif origin is list:
        found = isinstance(value, list) and all(fits(args[0], item) for item in value)
    elif origin is dict:
        found = isinstance(value, dict) and all(fits(args[1], item) for item in value.values())
    elif hasattr(shape, "__required_keys__"):
        found = _fits_keys(shape, value)
    elif shape is float:
        found = isinstance(value, (int, float)) and not isinstance(value, bool)
    elif shape is int:
        found = isinstance(value, int) and not isinstance(value, bool)
    else:
        found = isinstance(value, shape)
    return found


def _fits_keys(shape: Any, value: Any) -> bool:
    hints = _hints(shape)
    return (
        isinstance(value, dict)
        and shape.__required_keys__ <= set(value) <= set(hints)
        and all(fits(hints[name], item) for name, item in value.items())
    )


@cache
def _hints(shape: Any) -> dict[str, Any]:
    return get_type_hints(shape)
