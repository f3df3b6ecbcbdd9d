"""Small objects that do not change, for the modules that a recording imports.

A frozen dataclass would say the same. To import what makes dataclasses or named tuples, `typing`
among it, and to have it make the classes, took a sixth of the start of a recording: those modules
import `typing` for the type checker only, by a `TYPE_CHECKING` of their own.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, dataclass_transform
else:

    def dataclass_transform(**_: object) -> object:
        return lambda cls: cls


__all__ = ["Values"]


@dataclass_transform(frozen_default=True)
class Values:
    """Base of a class whose annotations are the names of its values, in order.

    Example:
        >>> class Point(Values):
        ...     x: int
        ...     y: int = 0
        >>> Point(3)
        Point(x=3, y=0)
    """

    def __init__(self, *values: Any, **named: Any) -> None:
        names = type(self).__annotations__
        given = dict(zip(names, values, strict=False), **named)
        missing = [name for name in names if name not in given and not hasattr(self, name)]
        if missing or len(given) != len(values) + len(named) or not given.keys() <= names.keys():
            raise TypeError(f"{type(self).__name__} takes {', '.join(names)}")
        vars(self).update(given)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} does not change")

    def _values(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in type(self).__annotations__)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def __repr__(self) -> str:
        named = zip(type(self).__annotations__, self._values(), strict=True)
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in named)})"
