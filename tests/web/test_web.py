"""The viewer's page: unit tests, types, and no downloads from other hosts."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from nptltrace import _paths
from nptltrace.errors import NativeFilesMissing
from tests.support import ROOT, clean_environment


def make(target: str) -> None:
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("node and npm are not installed")
    done = subprocess.run(
        ["make", "--no-print-directory", target],
        cwd=ROOT,
        env=clean_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    if done.returncode and "npm error" in done.stdout:
        pytest.skip("npm cannot fetch its packages")
    assert done.returncode == 0, done.stdout


def test_unit_tests_of_the_page_pass() -> None:
    make("web-test")


def page_files() -> dict[str, str]:
    try:
        page = _paths.page_dir()
    except NativeFilesMissing:
        pytest.skip("built without the page")
    return {path.name: path.read_text() for path in page.iterdir()}


def test_page_is_three_files() -> None:
    assert set(page_files()) == {"index.html", "app.js", "app.css"}


@pytest.mark.parametrize("name", ["index.html", "app.css"])
def test_page_names_no_other_host(name: str) -> None:
    assert not re.findall(r"(?:https?:)?//[a-z]", page_files()[name])


def test_sources_make_no_markup_and_run_no_text() -> None:
    forbidden = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(")
    sources = list((ROOT / "web" / "src").rglob("*.ts"))
    assert sources
    assert not [path.name for path in sources if forbidden.search(path.read_text())]


def test_page_is_small() -> None:
    assert sum(len(text) for text in page_files().values()) < 600_000
