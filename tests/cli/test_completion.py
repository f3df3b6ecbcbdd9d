"""Completion scripts, generated from the parsers and tried in real shells."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from nptltrace import cli
from nptltrace.cli.commands import completion
from tests.support import ROOT, clean_environment

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """Scripts for a `ptt` with two commands: `run` takes a program, and `print` prints."""

    class Print:
        SUMMARY = "print it: the user's [own] way"
        EXAMPLE = "ptt print"

    class Run:
        SUMMARY = "run a program"
        EXAMPLE = "ptt run"

    def parser(name: str) -> cli.Parser:
        made = cli.Parser(prog=f"ptt {name}")
        if name == "print":
            made.add_argument("--format", choices=["text", "json"], help="how: 'so' or [not]")
            made.add_argument("--hidden", help=argparse.SUPPRESS)
            made.add_argument("what", choices=["first", "last"])
        else:
            made.add_argument("-o", "--output", metavar="DIR", help="where to, 100%% sure")
            made.add_argument("command", nargs=argparse.REMAINDER)
        return made

    commands = {"print": Print, "run": Run}
    monkeypatch.setattr(cli, "command_names", lambda: list(commands))
    monkeypatch.setattr(cli, "load_command", commands.__getitem__)
    monkeypatch.setattr(cli, "command_parser", parser)
    made = {}
    for shell in ("bash", "zsh", "fish"):
        assert completion.run(argparse.Namespace(shell=shell)) == 0
        made[shell] = capsys.readouterr().out
    return made


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["p"], {"print"}),
        (["--ver"], {"--verbose", "--version"}),
        (["print", "--f"], {"--format"}),
        (["print", "--format", ""], {"text", "json"}),
        (["print", "--format", "j"], {"json"}),
        (["print", ""], {"first", "last"}),
        (["-v", "print", "l"], {"last"}),
        (["print", "--hid"], set()),
        (["run", "--o"], {"--output"}),
        (["run", "-o", ""], set()),
        (["run", "--", "/bin/fals"], {"/bin/false"}),
        (["run", "--", "/bin/false", "--o"], set()),
    ],
    ids=lambda words: " ".join(sorted(words) if isinstance(words, set) else words),
)
def test_bash_completes(scripts: dict[str, str], words: list[str], expected: set[str]) -> None:
    script = scripts["bash"] + (
        'COMP_WORDS=(ptt "$@") COMP_CWORD=$#\n_ptt\nprintf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    shown = subprocess.run(
        ["bash", "-c", script, "bash", *words], capture_output=True, encoding="utf-8", check=True
    )
    assert set(shown.stdout.split()) == expected
    assert not shown.stderr


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ptt p", {"print"}),
        ("ptt print --form", {"--format"}),
        ("ptt print --format ", {"text", "json"}),
        ("ptt print l", {"last"}),
        ("ptt run --out", {"--output"}),
    ],
)
def test_fish_completes(
    scripts: dict[str, str], tmp_path: Path, line: str, expected: set[str]
) -> None:
    script = tmp_path / "ptt.fish"
    script.write_text(scripts["fish"])
    command = f"source {script}; complete --do-complete '{line}'"
    shown = subprocess.run(
        ["fish", "--no-config", "-c", command], capture_output=True, encoding="utf-8", check=True
    )
    assert {row.partition("\t")[0].partition("=")[0] for row in shown.stdout.splitlines()} == (
        expected
    )
    assert not shown.stderr


# Types into a zsh at a pseudo-terminal and waits until the expected text is on the screen.
ZSH_DRIVER = r"""
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "autoload -Uz compinit; compinit -u -D; source $1; stty -echo; PS1=REA; PS1+=DY"
zpty -r shell screen '*READY*'
zpty -n -w shell "$2"$'\t\t'
zpty -r -m shell screen "*$3*"
zpty -d shell
"""


def has_terminals() -> bool:
    """Return whether the machine has pseudo-terminals; some containers have none."""
    try:
        for end in os.openpty():
            os.close(end)
    except OSError:
        return False
    return True


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
@pytest.mark.skipif(not has_terminals(), reason="no pseudo-terminals here")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ptt p", "rint"),
        ("ptt print --form", "at"),
        ("ptt print l", "ast"),
        ("ptt print --", "how: 'so' or "),
    ],
)
def test_zsh_completes(scripts: dict[str, str], tmp_path: Path, line: str, expected: str) -> None:
    script = tmp_path / "_ptt"
    script.write_text(scripts["zsh"])
    argv = ["zsh", "-f", "-c", ZSH_DRIVER, "zsh", str(script), line, expected]
    done = subprocess.run(argv, capture_output=True, encoding="utf-8", check=False, timeout=120)
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["record", "--level", "LEVEL_I"], {"LEVEL_IO"}),
        (["record", "--handler", "s"], {"shared"}),
        (["record", "--handler", "./"], set()),  # for a path, bash completes files
        (["view", "--format", "j"], {"jsonl"}),
        (["stat", "run"], set()),  # files again
    ],
    ids=lambda words: " ".join(sorted(words) if isinstance(words, set) else words),
)
def test_bash_with_the_real_commands(words: list[str], expected: set[str]) -> None:
    made = subprocess.run(
        [sys.executable, "-m", "nptltrace", "completion", "bash"],
        env=clean_environment(PYTHONPATH=str(ROOT / "src")),
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    test_bash_completes({"bash": made.stdout}, words, expected)
