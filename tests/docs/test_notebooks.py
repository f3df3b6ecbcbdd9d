"""The cells of every notebook in `examples/` run in order, and show results."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Ptt

NOTEBOOKS = sorted((ROOT / "examples").rglob("*.ipynb"))
# Prints the last value of each cell, as a notebook does: one line of JSON for each cell.
RUNNER = """\
import ast, json, sys

names = {"__name__": "__main__"}
for number, text in enumerate(json.load(sys.stdin)):
    body = ast.parse(text).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), f"cell {number}", "exec"), names)
    shown = None
    if last is not None:
        value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), names)
        html = getattr(value, "_repr_html_", lambda: None)()
        shown = None if value is None else {"text": repr(value), "html": html}
    print("@@" + json.dumps(shown))
"""


def cells(notebook: Path, kind: str) -> list[str]:
    """Return the texts of the cells of a kind."""
    document = json.loads(notebook.read_text())
    assert document["nbformat"] == 4
    return ["".join(c["source"]) for c in document["cells"] if c["cell_type"] == kind]


def run(notebook: Path, ptt: Ptt, directory: Path) -> list[dict[str, Any] | None]:
    """Run a notebook beside copies of its files, and return the results of its cells."""
    shutil.copytree(notebook.parent, directory)
    done = subprocess.run(
        [sys.executable, "-c", RUNNER],
        input=json.dumps(cells(notebook, "code")), capture_output=True, encoding="utf-8",
        cwd=directory, env={**ptt.environment(), "PATH": os.environ["PATH"]}, timeout=240,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = (line for line in done.stdout.splitlines() if line.startswith("@@"))
    return [json.loads(line[2:]) for line in lines]


def test_there_are_notebooks() -> None:
    assert NOTEBOOKS


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(notebook: Path, ptt: Ptt, tmp_path: Path) -> None:
    shown = run(notebook, ptt, tmp_path / "here")
    texts = cells(notebook, "code")
    assert len(shown) == len(texts)
    for text, result in zip(texts, shown, strict=True):
        last = ast.parse(text).body[-1]
        closes = isinstance(last, ast.Expr) and ast.unparse(last).endswith(".close()")
        assert closes or result is not None, text


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_without_results(notebook: Path) -> None:
    for cell in json.loads(notebook.read_text())["cells"]:
        assert cell.get("outputs", []) == []
        assert cell.get("execution_count") is None


def test_the_bank_notebook_shows_its_results(ptt: Ptt, tmp_path: Path) -> None:
    shown = run(ROOT / "examples" / "bank" / "contention.ipynb", ptt, tmp_path / "here")
    assert shown[0] == {"text": "0", "html": None}
    assert shown[1] is not None
    assert "Traceset bank.ptt" in shown[1]["text"]
    assert "<table>" in shown[1]["html"]
    assert any("savings" in item["text"] for item in shown if item is not None)
    assert any(item["text"].endswith(", True)") for item in shown if item is not None)
