"""Fixture of the analysis tests: the package in this process uses the native files under test."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _native(native_in_process: None) -> None:
    """Let the package use the native files under test: all of these tests call it."""
