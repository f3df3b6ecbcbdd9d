"""A run added in slices has the same rows in the store as a run added in one piece."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import nptltrace.fleet
from nptltrace.fleet.store import Store
from nptltrace.fleet.tables import STORED

if TYPE_CHECKING:
    from pathlib import Path

    from tests.fleet.conftest import Traces
    from tests.support import Ptt

pytestmark = pytest.mark.usefixtures("native_in_process")


def contents(store: str) -> dict[str, list[Any]]:
    """Return the rows of all tables of a store, sorted."""
    tables = {}
    with nptltrace.fleet.open(store) as fleet:
        for name in STORED:
            rows = fleet.sql(f"from {name}").to_pylist()
            tables[name] = sorted(({**row, "added_unix_ns": 0} for row in rows), key=str)
    return tables


@pytest.mark.parametrize("summary", [(), ("--summary", "1us")])
def test_the_store_is_the_same(
    summary: tuple[str, ...], ptt: Ptt, traces: Traces, tmp_path: Path
) -> None:
    whole, slices = str(tmp_path / "whole"), str(tmp_path / "slices")
    ptt("fleet", "add", whole, traces.forth[0], "--label", "release=1", *summary)
    added = ("fleet", "add", slices, str(traces.forth[0]), "--label", "release=1", *summary)
    assert "added 1 run" in ptt(*added, "--slices", "4").stderr
    assert contents(slices) == contents(whole)


def test_a_slice_that_fails_leaves_nothing(
    ptt: Ptt, traces: Traces, store: str, tmp_path: Path
) -> None:
    # The workers find no place for temporary files, such as saved states.
    nowhere = ("--scratch", tmp_path / "nowhere")
    failed = ptt("fleet", "add", store, traces.forth[0], "--slices", "3", *nowhere, status=2)
    assert "nowhere" in failed.stderr.splitlines()[-1]
    assert Store(store).runs().num_rows == 0
    message = ptt("fleet", "add", store, traces.forth[0], "--engine", "spark", status=2).stderr
    assert "is for --slices" in message.splitlines()[-1]
