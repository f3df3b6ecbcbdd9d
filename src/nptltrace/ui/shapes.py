"""Whether plain data has a shape that `protocol` declares."""

from __future__ import annotations

import types
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin, get_type_hints

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["fits"]


def fits(shape: Any, value: Any) -> bool:
    """Return whether a JSON value has a type: a plain type, a list, a dict or a shape."""
    return _test(shape)(value)


@cache
def _test(shape: Any) -> Callable[[Any], bool]:
    """Return a check that a value has a type. The check is made once, as documents are long."""
    origin, args = get_origin(shape), get_args(shape)
    if origin is Literal:
        return lambda value: value in args
    parts = [_test(part) for part in args]
    if origin in {Union, types.UnionType}:
        return lambda value: any(part(value) for part in parts)
    if origin is list:
        return lambda value: isinstance(value, list) and all(map(parts[0], value))
    if origin is dict:
        return lambda value: isinstance(value, dict) and all(map(parts[1], value.values()))
    return _test_of_keys(shape) if hasattr(shape, "__required_keys__") else _test_of_plain(shape)


def _test_of_plain(shape: Any) -> Callable[[Any], bool]:
    if shape is bool:
        return lambda value: isinstance(value, bool)
    kinds = (int, float) if shape is float else shape
    return lambda value: isinstance(value, kinds) and not isinstance(value, bool)


def _test_of_keys(shape: Any) -> Callable[[Any], bool]:
    required = shape.__required_keys__
    tests = {name: _test(hint) for name, hint in get_type_hints(shape).items()}

    def test(value: Any) -> bool:
        return (
            isinstance(value, dict)
            and required <= value.keys() <= tests.keys()
            and all(tests[name](item) for name, item in value.items())
        )

    return test
