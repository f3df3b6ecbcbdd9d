"""Properties that are computed once, by threads that may hold locks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["computed_once"]

T = TypeVar("T")


class computed_once(Generic[T]):  # noqa: N801 -- used as `functools.cached_property` is
    """A property whose value is computed when it is first asked for, and kept.

    Two threads that ask at the same time may both compute it. `functools.cached_property` has one
    lock for all instances before Python 3.12: a thread that computes one and waits for a lock, and
    one that holds this lock and asks for another, wait for each other for ever.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self._name = ""
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> computed_once[T]: ...

    @overload
    def __get__(self, instance: object, owner: type) -> T: ...

    def __get__(self, instance: object | None, owner: type) -> T | computed_once[T]:
        if instance is None:
            return self
        value = self._compute(instance)
        # Found before this descriptor from now on.
        instance.__dict__[self._name] = value
        return value
