"""Fixture for the tests of hostile programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests import sanitized
from tests.conformance.hostile.programs import Hostile
from tests.support import Ptt

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory, native_stage: Path) -> Hostile:
    """Compiler and runner: `hostile.same(hostile.program("exits.c"), "abort")`."""
    directory = tmp_path_factory.mktemp("hostile")
    return Hostile(Ptt(sanitized.mixed_stage(native_stage, directory / "stage")), directory)
