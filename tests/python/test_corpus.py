"""Thirty small programs print the places, objects and holders of their own waits."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from nptltrace.catalog._cpython import DEBUG_WORDS, VERSIONS
from tests.hang.test_cpython import interpreters, minor_of
from tests.python.test_frames import Stacks
from tests.support import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Recorder

# The waiting thread must start to wait before another thread wakes it.
pytestmark = pytest.mark.alone

CORPUS = ROOT / "tests" / "programs" / "python_corpus"
PROGRAMS = sorted(path for path in CORPUS.glob("*.py") if path.name != "witness.py")
# The programs' own pauses are longer.
LONG_NS = 20_000_000
# One interpreter runs all programs in turn, until a program fails.
SHELL = 'for program; do "$0" "$program" || exit; done'


def place_of(stacks: Stacks, number: str | None) -> str:
    """Return file and line of the call site of a stack."""
    return stacks.place(number).rpartition(" ")[2].strip("()")


def kept_by(stacks: Stacks, wait: dict[str, Any]) -> tuple[int, str]:
    """Return the holder of a wait, and the place at which it took or released the lock."""
    tid = wait["owner_tid"] or wait["waker_tid"]
    return tid, place_of(stacks, wait["holder_stack_id"] or wait["waker_stack"])


@pytest.mark.parametrize(
    "python",
    [
        pytest.param(item, marks=() if item == sys.executable else pytest.mark.slow)
        for item in interpreters()
    ],
)
def test_waits_and_holders_agree_with_the_programs(
    python: str, record: Recorder, tmp_path: Path
) -> None:
    if minor_of(python) not in {*VERSIONS, *DEBUG_WORDS}:
        pytest.skip("frames of this version are not read")
    assert len(PROGRAMS) >= 30
    witness = tmp_path / "said.jsonl"
    witness.touch()
    trace = record("env", f"WITNESS={witness}", "sh", "-c", SHELL, python, *PROGRAMS)
    said = [json.loads(line) for line in witness.read_text(encoding="utf-8").splitlines()]
    waited = {
        (event["pid"], event["tid"], event["place"], event["kind"])
        for event in said
        if "kind" in event
    }
    kept = {
        (event["pid"], event["tid"], event["place"]) for event in said if event["what"] == "keeps"
    }
    stacks = Stacks(trace)
    long = [wait for wait in stacks.waits if wait["dur_ns"] > LONG_NS and wait["kind"] != "cond"]
    found = {
        (wait["pid"], wait["tid"], place_of(stacks, wait["stack_id"]), wait["class"])
        for wait in long
    }
    assert not waited - found, sorted(waited - found)
    # No wait at these places has another class, and no contention is elsewhere.
    places = {item[:3] for item in waited}
    assert not {item for item in found if item[:3] in places} - waited
    assert not {item for item in found if item[3] == "contended"} - waited
    keepers = {
        (wait["pid"], *kept_by(stacks, wait))
        for wait in long
        if wait["class"] == "contended" and any(item[0] == wait["pid"] for item in kept)
    }
    assert keepers
    assert not keepers - kept, sorted(keepers - kept)
