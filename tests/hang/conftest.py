"""The programs that hang, compiled in several ways."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.hang.looking import WAYS, running
from tests.support import Compiler

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support import Ptt

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The program, compiled in a named way."""
    known: dict[str, Path] = {}

    def get(way: str) -> Path:
        if way not in known:
            compiler = Compiler(tmp_path_factory.mktemp(way), HERE)
            known[way] = compiler(HERE / "waits.c", *WAYS[way])
        return known[way]

    return get


@pytest.fixture(scope="session", autouse=True)
def _looking_is_allowed(ptt: Ptt) -> None:
    """Skip the tests if even the user's own processes are closed to inspection."""
    with running("sleep", "60") as pid:
        message = ptt("hang", pid, status=None).stderr
    if "cannot look into" in message:
        pytest.skip(message)
