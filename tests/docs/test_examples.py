"""Every example of the documentation runs, and prints the output that its page shows."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.docs.pages import matches, normal, read_page, script, split_output
from tests.ports import free_port
from tests.support import ROOT

if TYPE_CHECKING:
    from tests.support import Ptt

PAGES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"]
WITH_EXAMPLES = [page for page in PAGES if read_page(page).steps]
# These pages lead to a goal, step by step. Other pages show single commands.
TO_FOLLOW = [page for page in WITH_EXAMPLES if {"how-to", "tutorial"} & set(page.parts)]
# Servers of the pages listen on these ports; a test takes free ports.
PORT = "8742"
# Pages show programs on an idle machine.
pytestmark = pytest.mark.alone


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_examples_of_a_page_print_what_the_page_shows(
    path: Path, ptt: Ptt, tmp_path: Path
) -> None:
    page = read_page(path)
    for need in page.needs:
        if shutil.which(need) is None:
            pytest.skip(f"{need} is not installed")
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "ptt").write_text(f'#!/bin/sh\nexec {sys.executable} -m nptltrace "$@"\n')
    (programs / "ptt").chmod(0o755)
    directory = tmp_path / "here"
    directory.mkdir()
    done = subprocess.run(
        ["bash", "-c", re.sub(rf"\b{PORT}\b", str(free_port()), script(page))],
        cwd=directory,
        env=ptt.environment(
            {
                "PATH": f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}",
                "ROOT": str(ROOT),
                "COLUMNS": "80",
                "C_INCLUDE_PATH": str(ptt.native / "include"),
                "CPLUS_INCLUDE_PATH": str(ptt.native / "include"),
            }
        ),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        timeout=240,
        check=False,
    )
    results = split_output(done.stdout)
    for number, step in enumerate(page.steps):
        where = f"{path.relative_to(ROOT)}:{step.line}: $ {step.command}"
        assert number in results, f"{where}\nnever ended:\n{done.stdout[-2000:]}"
        status, printed = results[number]
        text = "\n".join(printed)
        assert status == step.exits, f"{where}\nexit status {status}, not {step.exits}\n{text}"
        if not step.agrees(printed):
            shown = "\n".join(step.shown)
            pytest.fail(f"{where}\nthe page shows\n{shown}\n\nit prints\n{text}")


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        (["a", "b"], ["a", "b"], True),
        (["a"], ["a", "b"], False),
        (["a", "..."], ["a", "b"], True),
        (["...", "b"], ["a", "b"], True),
        (["...", "b"], ["a", "c"], False),
        (["3 events, 1.5 ms"], ["4,711 events, 2.000 s"], True),
        (["mutex 0x12 taken"], ["mutex 0xfe taken"], True),
        (["mutex a ... taken"], ["mutex a was taken"], True),
        (["4 events"], ["no events"], False),
        (["name   3"], ["name 12345"], True),
    ],
)
def test_output_matches_by_its_shape(shown: list[str], printed: list[str], *, same: bool) -> None:
    assert matches(shown, printed) is same


def test_numbers_are_replaced_by_their_kind() -> None:
    assert normal("at put+0x75 (store.c:30)") == "at put+ADDRESS (store.c:30)"
    assert normal("2026-11-21 14:41:15") == "N-N-N TIME"
    assert normal("  2,566 events,   42.455 ms") == "N events, N s"


@pytest.mark.parametrize("path", TO_FOLLOW, ids=lambda path: str(path.relative_to(ROOT)))
def test_hidden_steps_only_copy_files_that_the_page_names(path: Path) -> None:
    """Hidden steps build and record nothing."""
    text = path.read_text(encoding="utf-8")
    seen = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    for unseen in re.findall(r"<!-- test: setup (.*?) -->", text):
        assert not re.search(r"\b(cc|gcc|c\+\+|make|ptt)\b", unseen), unseen
        for copied in re.findall(r'"\$ROOT"/(\S+)', unseen):
            assert copied in seen, f"where is {copied}?"


def test_exit_statuses_are_compared() -> None:
    output = "one\n\n@@step 0 0\ntwo\n@@step 1 3\n"
    assert split_output(output) == {0: (0, ["one"]), 1: (3, ["two"])}
