"""`ptt verify` does not accuse a correct library, and has a verdict on any trace."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from nptltrace.analysis.report.documents import verify_document
from nptltrace.analysis.verify import verify
from nptltrace.api import Traceset
from nptltrace.trace.symbols.alias import read_aliases
from nptltrace.trace.symbols.lookup import Symbols
from tests.analysis.any_events import any_steps, write_steps
from tests.analysis.simulator import simulate

if TYPE_CHECKING:
    from tests.analysis.any_events import Steps

STEPS = any_steps(
    without={"user"},
    gaps=st.sampled_from([0, 1, 50, 30_000, 10**9]),
    values=[0, 0, 0, 1, 2, 4, 11, 16, 28, 110, 125, 130, 2**31 - 1],
    most=150,
)

# These programs must try every one of these rules, or the test proves little.
RULES = {
    "mutex-exclusion", "mutex-recursion", "mutex-owner", "rwlock-exclusion", "rwlock-preference",
    "cond-mutex", "cond-wakeup", "barrier-early", "barrier-serial", "sem-value", "once-twice",
    "once-early", "join-end", "create-begin", "try-busy", "result",
}  # fmt: skip


def checked_of(seed: int, *, calls: bool) -> dict[str, int]:
    """Verify a random program on a good library; return the number of checks by rule."""
    directory = Path(tempfile.mkdtemp())
    try:
        # S311: the random numbers are no secret.
        trace = simulate(directory / "run.ptt", random.Random(seed), calls=calls)  # noqa: S311
        source = Traceset(trace)
        verdict = verify(source, Symbols(source, read_aliases([]), []), patience_ns=1)
    finally:
        shutil.rmtree(directory)
    assert [violation.message for violation in verdict.violations] == []
    return verdict.checked


@settings(max_examples=120, deadline=None)
@given(st.integers(0, 2**64), st.booleans())
def test_a_good_library_is_not_accused(seed: int, calls: bool) -> None:  # noqa: FBT001 -- drawn
    checked_of(seed, calls=calls)


def test_such_programs_try_the_rules() -> None:
    checked: Counter[str] = Counter()
    for seed in range(60):
        checked.update(checked_of(seed, calls=seed % 2 == 1))
    assert {rule for rule in RULES if not checked[rule]} == set()


@settings(max_examples=100, deadline=None)
@given(STEPS)
def test_any_events_have_a_verdict(steps: Steps) -> None:
    directory = Path(tempfile.mkdtemp())
    try:
        source = Traceset(write_steps(directory / "run.ptt", steps))
        verdict = verify(source, Symbols(source, read_aliases([]), []), patience_ns=0)
        document = verify_document(verdict)
    finally:
        shutil.rmtree(directory)
    for violation in document["violations"]:
        assert violation["events"]
        assert violation["message"]
        assert violation["count"] > 0
