"""Data classes without compiled methods behave as data classes of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from typing import Any

import pytest

from nptltrace._dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time."""

    begin: int
    end: int = 9
    names: list[str] = field(default_factory=list, repr=False)


@dataclass(frozen=True, slots=True, order=True)
class Order:
    key: int
    note: str = field(default="", compare=False)


@dataclass(slots=True)
class Count:
    one: int
    many: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Base:
    a: int


@dataclass(frozen=True)
class Derived(Base):
    b: int = 2

    @property
    def total(self) -> int:
        """The sum of both."""
        return self.a + self.b


def test_objects_print_compare_and_hash_their_fields() -> None:
    assert repr(Span(1, 2)) == "Span(begin=1, end=2)"
    assert Span(1) == Span(begin=1, end=9)
    assert Span(1) != Span(2)
    assert Derived(1).total == 3
    assert repr(Derived(1, b=5)) == "Derived(a=1, b=5)"
    assert len({Derived(1), Derived(1, 2), Derived(2)}) == 2
    assert min(Order(2), Order(1, "x")).note == "x"
    assert Order(1) < Order(2) >= Order(2) > Order(1) <= Order(1)
    assert Order(1, "x") == Order(1, "y")
    assert len({Order(1, "x"), Order(1, "y")}) == 1
    match Span(1, 2):
        case Span(begin, end):
            assert (begin, end) == (1, 2)


def test_each_object_has_a_list_of_its_own() -> None:
    first, second = Count(1), Count(2)
    first.many["x"] = 1
    assert second.many == {}
    assert Count(1, {"x": 1}) == first


@pytest.mark.parametrize("made", [Span(1), Derived(1)])
def test_frozen_objects_do_not_change(made: Any) -> None:
    with pytest.raises(AttributeError):
        made.begin = 3
    with pytest.raises(AttributeError):
        del made.begin


@pytest.mark.parametrize("values", [(), (1, 2, [], 4)])
def test_wrong_arguments_are_refused(values: tuple[Any, ...]) -> None:
    made: Any = Span
    with pytest.raises(TypeError, match="positional argument"):
        made(*values)
    with pytest.raises(TypeError):
        hash(Count(1))
    with pytest.raises(AttributeError):
        made(1).other  # noqa: B018 -- slots


def test_objects_are_copied_and_replaced() -> None:
    span = Span(1, 2, ["a"])
    assert copy.copy(span) == pickle.loads(pickle.dumps(span)) == span  # noqa: S301 -- its own
    assert replace(span, end=5) == dataclasses.replace(span, end=5) == Span(1, 5, ["a"])
    assert dataclasses.asdict(span) == {"begin": 1, "end": 2, "names": ["a"]}
    assert [each.name for each in dataclasses.fields(Derived)] == ["a", "b"]
    assert not hasattr(span, "__dict__")


def test_documentation_shows_the_parameters() -> None:
    text = str(inspect.signature(Span))
    assert text == "(begin: 'int', end: 'int' = 9, names: 'list[str]' = <factory>) -> None"
