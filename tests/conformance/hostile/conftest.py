"""Fixture for the tests of hostile programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.conformance.hostile.programs import Hostile

if TYPE_CHECKING:
    from tests.support import Ptt


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory, ptt: Ptt) -> Hostile:
    """Compiler and runner: `hostile.same(hostile.program("exits.c"), "abort")`."""
    return Hostile(ptt, tmp_path_factory.mktemp("hostile"))
