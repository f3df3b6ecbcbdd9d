"""A pending cancellation takes effect at the same call as untraced, whatever the handler does."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.handlers.helpers import run_traced
from tests.support import clean_environment

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support import Ptt

CALLS = ["fork", "_Fork", "clone", "syscall", "exec", "spawn", "exit", "dlclose"]


@pytest.mark.parametrize("handler", ["file", "text", "posix", "ring", "shared"])
def test_handlers_add_no_cancellation_points(
    handler: str, ptt: Ptt, program: Callable[[str], Path], tmp_path: Path
) -> None:
    cancelled = program("pending_cancel")
    for call in CALLS:
        plain = subprocess.run(
            [cancelled, call], env=clean_environment(), capture_output=True, encoding="utf-8",
            timeout=60, check=False,
        )  # fmt: skip
        if handler in {"ring", "shared"}:
            record = ("record", "-q", "--handler", handler, "-o", tmp_path / call)
            traced = ptt(*record, "--", cancelled, call, status=None)
        else:
            traced = run_traced(ptt, f"{handler}:{tmp_path / call}", cancelled, call)
        assert (call, traced.stdout, traced.returncode) == (call, plain.stdout, plain.returncode)
