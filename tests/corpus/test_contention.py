"""A report of known contention is right within a tenth, by the program's own clock."""

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


@pytest.mark.parametrize("options", [("-l", "2"), ("-l", "3"), ("--handler", "shared")])
def test_known_contention(
    options: tuple[str, ...], compile_c: Compiler, ptt: Ptt, tmp_path: Path
) -> None:
    program, trace = compile_c(CORPUS / "contention.c", f"-I{CORPUS}"), tmp_path / "run.ptt"
    own = measured(ptt("record", "-o", trace, *options, "--", program).stdout)
    out = json.loads(ptt("report", "--format", "json", trace).stdout)
    told = reported(out)
    assert len(own) > 20
    assert {key: told.get(key, 0) for key in own} == {
        key: pytest.approx(ns, rel=TENTH, abs=SLACK_NS) for key, ns in own.items()
    }
    # Nobody else is blamed for more than it took to wake up.
    for key, ns in told.items():
        if key[0] == "caused" and key[1] != "busy" and key not in own:
            assert ns < told["wait", key[1]] * TENTH, key
    given_up = next(item for item in out["objects"] if item["name"] == "slow")
    assert (given_up["waits"], given_up["wait_ns"], given_up["blamed"]) == (0, 0, [])
