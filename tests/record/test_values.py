"""Objects with named values that do not change."""

from __future__ import annotations

import pytest

from nptltrace._values import Values


class Size(Values):
    wide: int
    high: int = 3


def test_values_come_in_order_or_by_name() -> None:
    assert repr(Size(1)) == "Size(wide=1, high=3)"
    assert Size(1, 2) == Size(high=2, wide=1)
    assert Size(1, 2) != Size(1)
    assert len({Size(1), Size(1, 3), Size(2)}) == 2


def test_a_wrong_call_is_refused() -> None:
    for values, named in [((), {}), ((1, 2, 3), {}), ((1,), {"wide": 2}), ((1,), {"deep": 2})]:
        with pytest.raises(TypeError, match="Size takes wide, high"):
            Size(*values, **named)


def test_it_does_not_change() -> None:
    size = Size(1)
    with pytest.raises(AttributeError, match="Size does not change"):
        size.wide = 2  # type: ignore[misc]
    assert size.wide == 1
