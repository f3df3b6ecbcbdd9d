"""Fixtures of the analysis tests: the package in this process uses the native files under test."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _native(native_in_process: None) -> None:
    """All of these tests call the package."""
