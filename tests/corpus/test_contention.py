"""A report of known contention agrees with the program's own clock.

The program measures from a moment before a call to a moment after it. A busy machine may take the
processor away in that moment. So the program prints the least and the most of each quantity. A
report is right if it lies between these bounds, however far they are apart.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.corpus.programs import CORPUS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Compiler, Ptt

MS = 10**6
SLACK_NS = 1000  # each share of a divided time is cut to whole ns

Bounds = tuple[int, int]
Figures = dict[tuple[str, ...], int]


def measured(text: str) -> dict[tuple[str, ...], Bounds]:
    """Return the printed bounds of the program, summed by quantity, object and thread."""
    bounds: dict[tuple[str, ...], Bounds] = {}
    for line in text.splitlines():
        *words, least, most = line.split()
        key = tuple(words)
        before = bounds.get(key, (0, 0))
        bounds[key] = (before[0] + int(least), before[1] + int(most))
    return bounds


def reported(out: dict[str, Any]) -> Figures:
    """Return the same quantities from a report."""
    figures: Figures = {}
    for item in out["objects"]:
        name = item["name"]
        figures["hold", name] = item["hold_ns"]
        figures["wait", name] = item["wait_ns"]
        figures["idle", name] = item["idle_ns"]
        figures["timeout", name] = item["timeout_ns"]
        for blame in item["blamed"]:
            key = ("caused", name, str(blame["tid"]))
            figures[key] = figures.get(key, 0) + blame["wait_caused_ns"]
    for item in out["threads"]:
        figures["waits-of", str(item["tid"])] = item["wait_ns"]
        figures["join", str(item["tid"])] = item["join_ns"]
    return figures


def strangers(result: Figures, own: dict[tuple[str, ...], Bounds], lock: str) -> int:
    """Return the blame for waits at a lock of all threads except its own threads."""
    return sum(ns for key, ns in result.items() if key[:2] == ("caused", lock) and key not in own)


@pytest.mark.parametrize("options", [("-l", "2"), ("-l", "3"), ("--handler", "shared")])
def test_known_contention(
    options: tuple[str, ...], compile_c: Compiler, ptt: Ptt, trace_dir: Path
) -> None:
    program = compile_c(CORPUS / "contention.c", f"-I{CORPUS}")
    own = measured(ptt("record", "-o", trace_dir, *options, "--", program).stdout)
    out = json.loads(ptt("report", "--format", "json", trace_dir).stdout)
    result = reported(out)
    for key, (least, most) in own.items():
        assert least - SLACK_NS <= result.get(key, 0) <= most + SLACK_NS, key
    assert sum(least > 50 * MS for least, _ in own.values()) > 20
    # Blame of other threads is at most the time that the known holders may not have caused.
    for lock in ("chain", "table", "slot", "units", "door"):
        sure = sum(least for key, (least, _) in own.items() if key[:2] == ("caused", lock))
        assert sure > 0
        assert strangers(result, own, lock) <= own["wait", lock][1] - sure + SLACK_NS
    given_up = next(item for item in out["objects"] if item["name"] == "slow")
    assert (given_up["waits"], given_up["wait_ns"], given_up["blamed"]) == (0, 0, [])
