"""The small language of detail levels."""

from __future__ import annotations

import pytest

from nptltrace.errors import UsageError
from nptltrace.recording.settings.levels import parse_levels


@pytest.mark.parametrize(
    ("spec", "number", "argument"),
    [
        ("0", 0, ""),
        ("4", 4, ""),
        ("mutex=3,cond=2", 2, "mutex=3,cond=2"),
        ("1,mutex=3", 1, "mutex=3"),
        ("Mutex=3, SEM=0", 2, "mutex=3,sem=0"),
        ("LEVEL_NONE", 0, ""),
        ("LEVEL_ALL", 4, ""),
        ("LEVEL_IO", 3, ""),
        ("LEVEL_MUTEX_ALL", 0, "handler=1,process=1,user=1,mutex=4"),
        ("LEVEL_MUTEX_IO,LEVEL_COND_ALL", 0, "handler=1,process=1,user=1,mutex=3,cond=4"),
        ("LEVEL_IO,LEVEL_MUTEX_ALL", 3, "mutex=4"),
    ],
)
def test_a_level_becomes_an_argument_of_the_tracer(spec: str, number: int, argument: str) -> None:
    levels = parse_levels(spec)
    assert (levels.number, levels.argument) == (number, argument)


@pytest.mark.parametrize(
    "spec", ["5", "-1", "", "mutex", "mutex=", "mutex=9", "mutux=1", "LEVEL_X_ALL", "LEVEL_", "1;2"]
)
def test_nonsense_is_refused_with_the_expected_form(spec: str) -> None:
    with pytest.raises(UsageError, match=r"expected|unknown"):
        parse_levels(spec)


def test_unnamed_domains_keep_their_level() -> None:
    levels = parse_levels("mutex=3", base=None)
    assert levels.of("mutex") == 3
    assert levels.of("cond") is None
