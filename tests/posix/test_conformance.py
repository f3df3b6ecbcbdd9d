"""The suite of <trace.h>, program by program: static with LTO, and under valgrind.

The shared library goes through the same programs in ctest, there under the sanitizers as well.
"""

from __future__ import annotations

import re
import shutil
from functools import cache
from typing import TYPE_CHECKING

import pytest

from tests.posix.building import GROUPS, SUITE, Builder, run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_SUM = re.compile(r"(\d+) cases, (\d+) checks, 0 cases failed\s*\Z")
_FUNCTION = re.compile(r"\b(posix_trace_\w+)\(")
# Valgrind runs one thread at a time; what lives from full speed is left to the sanitizers.
_VALGRIND = ("attributes", "sets", "names", "event", "log")


@pytest.fixture(scope="module")
def build(native_stage: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    builder = Builder(native_stage, tmp_path_factory.mktemp("suite"))

    @cache
    def get(group: str, *flags: str, static: bool = False) -> Path:
        kind = "static" if static else "shared"
        sources = [SUITE / "suite.c", SUITE / f"{group}.c"]
        return builder(f"{group}-{kind}", sources, *flags, static=static)

    return get


@pytest.mark.parametrize("group", GROUPS)
def test_static_and_optimised_across_files(group: str, build: Callable[..., Path]) -> None:
    said = run(build(group, "-flto", "-O2", static=True))
    assert _SUM.search(said), said


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
@pytest.mark.parametrize("group", _VALGRIND)
def test_under_valgrind(group: str, build: Callable[..., Path]) -> None:
    said = run(
        "valgrind", "-q", "--error-exitcode=99", "--leak-check=full", "--trace-children=yes",
        build(group),
        env={"SUITE_QUICK": "1", "SUITE_SECONDS": "200"},
    )  # fmt: skip
    assert _SUM.search(said), said


def test_suite_is_large_enough(build: Callable[..., Path]) -> None:
    checks = 0
    for group in ("attributes", "sets", "names", "life"):
        found = _SUM.search(run(build(group, "-flto", "-O2", static=True)))
        assert found
        checks += int(found[2])
    assert checks >= 300


def test_every_function_is_tested(native_stage: Path) -> None:
    header = (native_stage / "include" / "trace.h").read_text(encoding="utf-8")
    declared = set(_FUNCTION.findall(re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)))
    called: set[str] = set()
    for group in GROUPS:
        called |= set(_FUNCTION.findall((SUITE / f"{group}.c").read_text(encoding="utf-8")))
    assert len(declared) == 50
    assert declared - called == set()
