"""Manual pages are complete, and groff and mandoc read them without a warning."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from nptltrace import cli
from nptltrace.cli.pages import man
from nptltrace.cli.pages.describe import arguments
from tests.support import ROOT

COMMANDS = cli.command_names()


def test_each_command_and_ptt_have_a_page(tmp_path: Path) -> None:
    man.main(tmp_path / "man1")
    pages = {page.name for page in (tmp_path / "man1").iterdir()}
    assert pages == {"ptt.1"} | {f"ptt-{name}.1" for name in COMMANDS}


@pytest.mark.parametrize("name", COMMANDS)
def test_page_has_every_option(name: str) -> None:
    page = man.command_page(name)
    for entry in arguments(cli.command_parser(name)):
        for option in entry.names:
            assert option.replace("-", r"\-") in page


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
@pytest.mark.parametrize("name", [None, *COMMANDS])
def test_groff_reports_nothing(name: str | None) -> None:
    page = man.top_page() if name is None else man.command_page(name)
    shown = subprocess.run(
        ["groff", "-man", "-ww", "-Kutf8", "-Tutf8", "-P-cbou"],
        input=page,
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert not shown.stderr
    assert "SYNOPSIS" in shown.stdout


HAND_WRITTEN = sorted((ROOT / "docs" / "man").iterdir())


@pytest.mark.skipif(shutil.which("mandoc") is None, reason="mandoc is not installed")
@pytest.mark.parametrize("name", [None, *COMMANDS, *HAND_WRITTEN], ids=str)
def test_mandoc_reports_nothing(name: str | Path | None, tmp_path: Path) -> None:
    page = tmp_path / "page"
    if isinstance(name, Path):
        page.write_text(name.read_text())
    else:
        page.write_text(man.top_page() if name is None else man.command_page(name))
    message = subprocess.run(
        ["mandoc", "-T", "lint", "-W", "warning", page],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert not message.stdout + message.stderr


def test_special_characters_are_escaped() -> None:
    assert man._line(r".so -v a\b") == r"\&.so \-v a\eb"
    assert man._line("'tis") == r"\&'tis"


def test_indented_blocks_keep_their_lines() -> None:
    assert man._paragraphs("one\ntwo\n\n  a\n  b\n") == (
        ["one two", ".PP", ".nf", "  a", "  b", ".fi"]
    )
