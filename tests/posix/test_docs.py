"""Every function of <trace.h> has its manual page and its line in the reference."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.support import ROOT

if TYPE_CHECKING:
    from pathlib import Path

PAGES = ROOT / "docs" / "man"
FUNCTION = re.compile(r"\bposix_trace_\w+(?=\()")


@pytest.fixture(scope="module")
def functions(native_stage: Path) -> set[str]:
    header = (native_stage / "include" / "trace.h").read_text(encoding="utf-8")
    return set(FUNCTION.findall(re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)))


def _named(page: Path) -> list[str]:
    """Return the functions in a page's NAME section."""
    text = page.read_text(encoding="utf-8")
    return re.findall(r"^(posix_trace_\w+),?$", text.partition(".SH SYNOPSIS")[0], re.MULTILINE)


def test_every_function_has_one_manual_page(functions: set[str]) -> None:
    pages = {page: _named(page) for page in PAGES.glob("posix_trace_*.3")}
    named = [name for names in pages.values() for name in names]
    assert sorted(named) == sorted(functions)
    for page, names in pages.items():
        assert page.stem in names  # the file's name is one of the page's functions
        text = page.read_text(encoding="utf-8")
        for name in names:
            assert re.search(rf"^\.BI \"\w+ {name}\(", text, re.MULTILINE), name
        assert ".SH RETURN VALUE" in text


def test_the_overview_refers_to_every_page() -> None:
    overview = (PAGES / "trace.h.3").read_text(encoding="utf-8").partition(".SH SEE ALSO")[2]
    see = set(re.findall(r"^\.BR (\S+) \(3\)", overview, re.MULTILINE))
    assert see == {page.stem for page in PAGES.glob("posix_trace_*.3")}


def test_every_function_has_one_line_in_the_reference(functions: set[str]) -> None:
    page = (ROOT / "docs" / "reference" / "posix-trace.md").read_text(encoding="utf-8")
    named = re.findall(r"`(posix_trace_\w+)`", page.partition("## In Python")[0])
    assert sorted(named) == sorted(functions)
