"""Fixtures for the tests of the tracer alone: no collector, no reader."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.support import PROGRAMS
from tests.tracer.counted import Runner

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def _compile(*command: str | Path) -> None:
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, f"{command}\n{done.stderr}"


def _count_handler(directory: Path, native_stage: Path, *flags: str) -> Path:
    library = directory / "libcount.so"
    _compile(
        "cc", "-shared", "-fPIC", f"-I{native_stage / 'include'}", *flags, "-o", library,
        PROGRAMS / "count_handler.c",
    )  # fmt: skip
    return library


@pytest.fixture(scope="session")
def count_handler(tmp_path_factory: pytest.TempPathFactory, native_stage: Path) -> Path:
    """The counting handler, compiled with the command from its documentation page."""
    return _count_handler(tmp_path_factory.mktemp("handler"), native_stage)


@pytest.fixture
def traced(tmp_path: Path, native_stage: Path, count_handler: Path) -> Runner:
    """Runner: `traced(program("sem"), level=3)`, `traced.plain(program("sem"))`."""
    directory = tmp_path / "records"
    directory.mkdir()
    return Runner(native_stage / "lib" / "libnptltrace.so", count_handler, directory)


@pytest.fixture
def traced_plain(tmp_path: Path, native_stage: Path) -> Runner:
    """Runner with a handler that takes plain events through `nptl_trace_handler_getplain()`."""
    handler = _count_handler(tmp_path, native_stage, "-DGETPLAIN")
    directory = tmp_path / "plain-records"
    directory.mkdir()
    return Runner(native_stage / "lib" / "libnptltrace.so", handler, directory)


@pytest.fixture(scope="session")
def cxx_program(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """C++20 programs of tests/programs: `cxx_program("cxx")`."""
    directory = tmp_path_factory.mktemp("cxx")

    def get(name: str) -> Path:
        output = directory / name
        if not output.exists():
            _compile("g++", "-std=c++20", "-O1", "-pthread", PROGRAMS / f"{name}.cc", "-o", output)
        return output

    return get


@pytest.fixture(scope="session")
def early_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program with a library; the library's constructor runs before the tracer's."""
    directory = tmp_path_factory.mktemp("early")
    main = directory / "main.c"
    main.write_text("int early_used(void);\nint main(void) { return early_used() != 1; }\n")
    _compile(
        "gcc", "-shared", "-fPIC", "-pthread", PROGRAMS / "early.c",
        "-o", directory / "libearly.so",
    )  # fmt: skip
    _compile(
        "gcc", main, "-o", directory / "early", f"-L{directory}", "-learly",
        f"-Wl,-rpath,{directory}",
    )  # fmt: skip
    return directory / "early"
