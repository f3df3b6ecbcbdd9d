"""Fixtures of the analysis tests: the package in this process uses the native files under test."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def _native(native_stage: Path) -> Iterator[None]:
    from nptltrace import _paths

    before = os.environ.get("NPTLTRACE_NATIVE_DIR")
    os.environ["NPTLTRACE_NATIVE_DIR"] = str(native_stage)
    _paths.native_dir.cache_clear()
    yield
    if before is None:
        del os.environ["NPTLTRACE_NATIVE_DIR"]
    else:
        os.environ["NPTLTRACE_NATIVE_DIR"] = before
    _paths.native_dir.cache_clear()
