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
# Valgrind runs one thread at a time; the sanitizers test programs that need full speed.
_VALGRIND = ("life", "event", "reading", "log")


@pytest.fixture(scope="module")
def builder(native_stage: Path, tmp_path_factory: pytest.TempPathFactory) -> Builder:
    return Builder(native_stage, tmp_path_factory.mktemp("suite"))


def _sources(group: str) -> list[Path]:
    return [SUITE / "suite.c", SUITE / "logs.c", SUITE / f"{group}.c"]


@pytest.fixture(scope="module")
def checks(builder: Builder) -> Callable[[str], int]:
    """Return the number of checks in a program; all must pass, and each program runs once."""

    @cache
    def get(group: str) -> int:
        message = run(builder(f"{group}-static", _sources(group), "-flto", "-O2", static=True))
        match = _SUM.search(message)
        assert match, message
        return int(match[2])

    return get


@pytest.mark.parametrize("group", GROUPS)
def test_the_suite_passes_static_with_lto(group: str, checks: Callable[[str], int]) -> None:
    assert checks(group)


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
@pytest.mark.parametrize("group", _VALGRIND)
def test_the_suite_passes_under_valgrind(group: str, builder: Builder) -> None:
    message = run(
        "valgrind", "-q", "--error-exitcode=99", "--leak-check=full", "--trace-children=yes",
        f"--suppressions={SUITE / 'valgrind.supp'}",
        "--fair-sched=yes",  # otherwise a thread that retries in a loop may run alone
        builder(group, _sources(group)),
        env={"SUITE_QUICK": "1", "SUITE_SECONDS": "200"},
    )  # fmt: skip
    assert _SUM.search(message), message


def test_the_suite_is_large_enough(checks: Callable[[str], int]) -> None:
    # in these groups, the number of checks does not depend on the number of events read
    assert sum(map(checks, ("header", "attributes", "sets", "names", "life"))) >= 300


def test_every_function_is_tested(native_stage: Path) -> None:
    header = (native_stage / "include" / "trace.h").read_text(encoding="utf-8")
    declared = set(_FUNCTION.findall(re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)))
    called: set[str] = set()
    for group in GROUPS:
        called |= set(_FUNCTION.findall((SUITE / f"{group}.c").read_text(encoding="utf-8")))
    assert len(declared) == 50
    assert declared - called == set()
