"""All figures of one name are the same number in every command, table and page.

`PTT_TESTS=all` compares recordings of programs of all kinds, each also in windows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nptltrace.analysis.model import model_tables
from nptltrace.api import Traceset
from nptltrace.errors import PttError
from tests.agreement.compare import compare
from tests.agreement.live import compare_live
from tests.agreement.recordings import FEW, RECORDINGS, Missing, Place
from tests.support import ALL

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Ptt

pytestmark = pytest.mark.usefixtures("native_in_process")


@pytest.fixture
def place(ptt: Ptt, tmp_path: Path) -> Place:
    return Place(ptt, tmp_path)


@pytest.mark.parametrize("name", RECORDINGS if ALL else FEW)
def test_figures_of_finished_traces_agree(name: str, place: Place) -> None:
    try:
        trace = RECORDINGS[name](place)
    except Missing as missing:
        pytest.skip(str(missing))
    windows = 3 if ALL or name == "reused" else 0
    found = compare(trace, count=windows, exported=ALL or name == FEW[0])
    assert not found.found
    assert found.compared > 300


def test_figures_of_a_live_recording_agree(place: Place) -> None:
    with place.start_open() as recorder:

        def waiting() -> bool:
            try:
                rows = model_tables(Traceset(place.trace)).waits.to_pylist()
            except PttError:
                return False
            return sum(bool(row["open"]) for row in rows) == 5

        place.until(waiting)
        found = compare_live(place.trace)
        assert recorder.stdin is not None
        recorder.stdin.close()
    assert not found.found
    assert found.compared > 100
