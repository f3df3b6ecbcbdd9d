"""Each command has a page, and the generated part of the page is up to date."""

from __future__ import annotations

import re

import pytest

from nptltrace import cli
from nptltrace.cli.pages.markdown import END, renewed
from tests.docs.pages import read_page
from tests.support import ROOT

PAGES = ROOT / "docs" / "reference" / "commands"


@pytest.mark.parametrize("name", cli.command_names())
def test_page_is_up_to_date(name: str) -> None:
    path = PAGES / f"{name}.md"
    assert path.exists(), "`make commands` makes the page"
    text = path.read_text()
    assert renewed(name, text) == text, "`make commands` renews the page"


@pytest.mark.parametrize("name", cli.command_names())
def test_page_has_tested_examples(name: str) -> None:
    path = PAGES / f"{name}.md"
    assert f"ptt {name}" in path.read_text().partition(END)[2]
    assert any(f"ptt {name}" in step.command for step in read_page(path).steps)


def test_pages_are_listed() -> None:
    listed = re.findall(r"(?m)^([a-z-]+)$", (PAGES / "index.md").read_text())
    assert sorted(listed) == sorted(cli.command_names())


def test_a_new_page_and_a_renewed_one() -> None:
    made = renewed("stat", "")
    assert "# ptt stat" in made
    by_hand = f"{made}\n## Mine\n"
    assert renewed("stat", by_hand.replace("# ptt stat", "# ptt old")) == by_hand
