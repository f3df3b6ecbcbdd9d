"""A report of known contention is right within a tenth, by the program's own clock.

What the program measures begins a moment before the call and ends a moment after it. A busy machine
may take the processor away in just that moment; then the program is asked once more.
"""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pytest

from tests.corpus.programs import CORPUS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Compiler, Ptt

TENTH = 0.1
ATTEMPTS = 5
SLACK_NS = 10**6  # what a call takes that has not waited counts for nothing


def measured(text: str) -> dict[tuple[str, ...], int]:
    """Return what the program measured, summed by quantity, object and thread."""
    found: dict[tuple[str, ...], int] = defaultdict(int)
    for line in text.splitlines():
        *key, ns = line.split()
        found[tuple(key)] += int(ns)
    return dict(found)


def reported(out: dict[str, Any]) -> dict[tuple[str, ...], int]:
    """Return the same quantities of a report."""
    found: dict[tuple[str, ...], int] = {}
    for item in out["objects"]:
        name = item["name"]
        found["hold", name] = item["hold_ns"]
        found["wait", name] = item["wait_ns"]
        found["idle", name] = item["idle_ns"]
        found["timeout", name] = item["timeout_ns"]
        for blame in item["blamed"]:
            key = ("caused", name, str(blame["tid"]))
            found[key] = found.get(key, 0) + blame["wait_caused_ns"]
    for item in out["threads"]:
        found["waits-of", str(item["tid"])] = item["wait_ns"]
        found["join", str(item["tid"])] = item["join_ns"]
    return found


Figures = dict[tuple[str, ...], int]


def expected(own: Figures) -> dict[tuple[str, ...], object]:
    """Return what the program measured, as nearly as a report has to tell it."""
    return {key: pytest.approx(ns, rel=TENTH, abs=SLACK_NS) for key, ns in own.items()}


def unexplained(told: Figures, own: Figures) -> Figures:
    """Return the blame of threads that had nothing to do with it."""
    return {
        key: ns
        for key, ns in told.items()
        if key[0] == "caused" and key[1] != "busy" and key not in own
        if ns >= told["wait", key[1]] * TENTH
    }


def right(told: Figures, own: Figures) -> bool:
    """Tell whether a report and a program agree."""
    same = {key: told.get(key, 0) for key in own} == expected(own)
    return same and not unexplained(told, own)


@pytest.mark.parametrize("options", [("-l", "2"), ("-l", "3"), ("--handler", "shared")])
def test_known_contention(
    options: tuple[str, ...], compile_c: Compiler, ptt: Ptt, tmp_path: Path
) -> None:
    program = compile_c(CORPUS / "contention.c", f"-I{CORPUS}")
    for attempt in range(ATTEMPTS):
        trace = tmp_path / f"run-{attempt}.ptt"
        own = measured(ptt("record", "-o", trace, *options, "--", program).stdout)
        out = json.loads(ptt("report", "--format", "json", trace).stdout)
        told = reported(out)
        assert len(own) > 20
        if right(told, own):
            break
    assert {key: told.get(key, 0) for key in own} == expected(own)
    # Nobody else is blamed for more than it took to wake up.
    assert unexplained(told, own) == {}
    given_up = next(item for item in out["objects"] if item["name"] == "slow")
    assert (given_up["waits"], given_up["wait_ns"], given_up["blamed"]) == (0, 0, [])
