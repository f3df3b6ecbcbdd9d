"""A library that keeps its promises is not accused; whatever a trace says, there is a verdict."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections import Counter
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from nptltrace.analysis.verify import verify
from nptltrace.catalog import EVENTS
from nptltrace.cli.verify import as_json
from nptltrace.trace.alias import read_aliases
from nptltrace.trace.source import Source
from nptltrace.trace.symbols import Symbols
from tests.analysis.simulator import simulate
from tests.trace.builder import Builder, Event

T0 = 10**12
TYPES = [event for event in EVENTS if event.domain != "user"]

# Every rule must have been held against some of these programs, or they prove little.
RULES = {
    "mutex-exclusion", "mutex-recursion", "mutex-owner", "rwlock-exclusion", "rwlock-preference",
    "cond-mutex", "cond-wakeup", "barrier-early", "barrier-serial", "sem-value", "once-twice",
    "once-early", "join-end", "create-begin", "try-busy", "result",
}  # fmt: skip


def checked_of(seed: int, *, calls: bool) -> dict[str, int]:
    """Verify a random program on a good library; return what was checked."""
    directory = Path(tempfile.mkdtemp())
    try:
        # S311: nothing secret.
        trace = simulate(directory / "run.ptt", random.Random(seed), calls=calls)  # noqa: S311
        source = Source([trace])
        verdict = verify(source, Symbols(source, read_aliases([]), []), patience_ns=1)
    finally:
        shutil.rmtree(directory)
    assert [one.message for one in verdict.violations] == []
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


step = st.tuples(
    st.integers(0, 3),  # thread
    st.sampled_from([0, 1, 50, 30_000, 10**9]),  # gap
    st.integers(0, len(TYPES) - 1),
    st.integers(0, 2),  # object
    st.sampled_from([0, 0, 0, 1, 2, 4, 11, 16, 28, 110, 125, 130, 2**31 - 1]),
)
Steps = list[tuple[int, int, int, int, int]]


def write(path: Path, steps: Steps) -> Path:
    made = Builder(path)
    now, threads = T0, [made.thread(101 + n, []) for n in range(4)]
    for thread, gap, kind, number, value in steps:
        now += gap
        event = TYPES[kind]
        fields = {f.name: value & 0x7F if f.type == "u8" else value for f in event.fields}
        fields = {f.name: fields[f.name] & 0xFFFF if f.type == "u16" else fields[f.name]
                  for f in event.fields if f.type != "bytes"}  # fmt: skip
        if "mutex" in fields:
            fields["mutex"] = 0x4040
        threads[thread].packets[0].append(
            Event(now, event.name, 0x4040 + 64 * number, thread + 1, variant=event.variant,
                  fields=fields)
        )  # fmt: skip
    for one in threads:
        one.packets = [packet for packet in one.packets if packet]
    made.threads = [one for one in threads if one.packets]
    return made.write()


@settings(max_examples=100, deadline=None)
@given(st.lists(step, min_size=1, max_size=150))
def test_any_events_have_a_verdict(steps: Steps) -> None:
    directory = Path(tempfile.mkdtemp())
    try:
        source = Source([write(directory / "run.ptt", steps)])
        verdict = verify(source, Symbols(source, read_aliases([]), []), patience_ns=0)
        document = as_json(verdict)
    finally:
        shutil.rmtree(directory)
    for one in document["violations"]:
        assert one["events"]
        assert one["message"]
        assert one["count"] > 0
