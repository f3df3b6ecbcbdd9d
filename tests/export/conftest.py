"""Fixtures of the export tests: recorded programs, each once, and the names of addresses."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pytest

from tests.export.programs import aliases
from tests.support import ROOT, Compiler, Recorder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support import Ptt


@pytest.fixture(autouse=True)
def _native(native_in_process: None) -> None:
    """Load the native files: all these tests call the package."""


@pytest.fixture(scope="session")
def recorded(
    tmp_path_factory: pytest.TempPathFactory, ptt: Ptt, native_stage: Path,
    program: Callable[[str], Path],
) -> Callable[[str], Path]:  # fmt: skip
    """Traces of programs by name, each recorded once: `recorded("mix")`."""
    directory = tmp_path_factory.mktemp("export")
    compiler = Compiler(directory, native_stage / "include")
    recorder = Recorder(ptt, tmp_path_factory.mktemp("exported"))
    known: dict[str, Path] = {}

    def get(name: str) -> Path:
        if name not in known:
            if name == "mix":
                known[name] = recorder(program("mix"), "5", "300", options=("-l", "4"))
            elif name == "hostile":
                known[name] = recorder(compiler(ROOT / "tests" / "export" / "hostile.c"))
            else:
                known[name] = recorder(program(name))
        return known[name]

    return get


@pytest.fixture(scope="session")
def exported(
    tmp_path_factory: pytest.TempPathFactory, ptt: Ptt, recorded: Callable[[str], Path]
) -> Callable[[str, str], Path]:
    """Exports by format and program, each made once: `exported("chrome", "mix")`."""
    directory = tmp_path_factory.mktemp("out")
    names = aliases(directory)

    @cache
    def get(to: str, name: str) -> Path:
        out = directory / f"{name}.{to}"
        ptt("export", "--to", to, "-o", out, "--alias", names, recorded(name))
        return out

    return get
