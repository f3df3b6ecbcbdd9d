"""The frame of the command line: help, errors, exit statuses and imports."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import nptltrace
from nptltrace import cli
from nptltrace.cli.pages import describe
from nptltrace.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

    from tests.support import Ptt

HEAVY = ("numpy", "pyarrow", "rich", "asyncio", "logging")
COMMANDS = cli.command_names()


# Runs a command as `ptt` does, then prints the loaded modules on stderr.
SPY = """
import sys
from nptltrace.cli import main
status = main(sys.argv[1:])
print(*sys.modules, file=sys.stderr)
sys.exit(status)
"""


def imported(ptt: Ptt, *args: str) -> set[str]:
    """Return the modules that `ptt ARGS` imports."""
    result = subprocess.run(
        [sys.executable, "-c", SPY, *args],
        env=ptt.environment(),
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    return set(result.stderr.split())


class TestStart:
    """No command loads a heavy module before it needs the module."""

    @pytest.mark.parametrize("args", [["--help"], ["--version"], ["config", "--libdir"]], ids=str)
    def test_start_imports_no_heavy_module(self, ptt: Ptt, args: list[str]) -> None:
        assert imported(ptt, *args).isdisjoint(HEAVY)

    @pytest.mark.parametrize("name", COMMANDS)
    def test_help_of_a_command_imports_no_heavy_module(self, ptt: Ptt, name: str) -> None:
        assert imported(ptt, name, "--help").isdisjoint(HEAVY)

    def test_modules_that_ptt_replaces_still_work(self, ptt: Ptt) -> None:
        code = (
            "import nptltrace.cli, gettext, pathlib, urllib.parse; "
            "print(pathlib.Path('/a b').as_uri(), urllib.parse.quote('ü'), gettext.gettext('one'))"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], env=ptt.environment(), capture_output=True, text=True,
            check=True,
        )  # fmt: skip
        assert done.stdout.split() == ["file:///a%20b", "%C3%BC", "one"]

    def test_one_command_does_not_load_another(self, ptt: Ptt) -> None:
        loaded = imported(ptt, "config", "--libdir")
        commands = {f"nptltrace.cli.commands.{name.replace('-', '_')}" for name in COMMANDS}
        assert loaded & commands == {"nptltrace.cli.commands.config"}


class TestCommands:
    """Each module of the package is a complete command."""

    @pytest.mark.parametrize("name", COMMANDS)
    def test_has_a_summary_of_one_line(self, name: str) -> None:
        summary = cli.load_command(name).SUMMARY
        assert summary
        assert "\n" not in summary
        assert not summary.endswith(".")

    @pytest.mark.parametrize("name", COMMANDS)
    def test_help_ends_with_an_example(self, ptt: Ptt, name: str) -> None:
        shown = ptt(name, "--help").stdout
        _, _, example = shown.partition("\nexample:\n")
        assert f"ptt {name}" in example

    @pytest.mark.parametrize("name", COMMANDS)
    def test_help_fits_a_terminal(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """Only examples may be longer: users copy these lines."""
        monkeypatch.setenv("COLUMNS", "80")
        text, _, _ = cli.command_parser(name).format_help().partition("\nexample:\n")
        assert [line for line in text.splitlines() if len(line) > 80] == []

    def test_options_for_a_part_have_the_same_help_everywhere(self) -> None:
        """A reader who knows the options of one command knows the options of all."""
        words: dict[str, set[str]] = {}
        for name in COMMANDS:
            for option in describe.arguments(cli.command_parser(name)):
                if option.value is not None and option.names:
                    words.setdefault(option.names[0], set()).add(f"{option.value}: {option.help}")
        for same in ("--from", "--pid", "--tid", "--object", "--site", "--alias", "--symbols"):
            assert len(words[same]) == 1, words[same]
        # `ptt export` differs: its `--to` also takes a format, as the old name of `--format`.
        # With --profile it is a directory.
        directories = {said for said in words["--to"] if said.startswith("DIR: with --profile: ")}
        assert len(directories) <= 1
        assert len(words["--to"] - directories) == 2

    def test_every_option_is_explained(self) -> None:
        """The sentence has no capital and no full stop, like sentences of argparse."""
        for name in COMMANDS:
            for option in describe.arguments(cli.command_parser(name)):
                assert option.help, (name, option.names)
                assert not option.help.endswith("."), (name, option.names)

    def test_top_help_lists_each_command(self, ptt: Ptt) -> None:
        shown = ptt("--help").stdout
        for name in COMMANDS:
            assert f"\n  {name} " in shown

    def test_top_help_lists_record_first(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        for name in ("__init__.py", "config.py", "record.py", "two_words.py", "view.py", "notes"):
            (tmp_path / name).touch()
        monkeypatch.setattr(cli.commands, "__path__", [str(tmp_path)])
        assert cli.command_names() == ["record", "view", "config", "two-words"]


class TestErrors:
    """Wrong usage is one line on stderr and exit status 2."""

    @pytest.mark.parametrize(
        ("args", "message"),
        [
            ([], "no command given"),
            (["nonsense"], "no command 'nonsense'"),
            (["confg"], "did you mean config?"),
            (["--nonsense"], "unrecognized arguments: --nonsense"),
            (["config", "--nonsense"], "unrecognized arguments: --nonsense"),
            (["config"], "choose what to print: "),
            (["../errors"], "no command '../errors'"),
            (["_options"], "no command '_options'"),
        ],
        ids=str,
    )
    def test_wrong_usage_is_an_error_of_one_line(
        self, ptt: Ptt, args: list[str], message: str
    ) -> None:
        result = ptt(*args, status=2)
        assert not result.stdout
        assert result.stderr.startswith("ptt: error: ")
        assert message in result.stderr
        assert result.stderr.count("\n") == 1

    def test_debug_shows_the_traceback(self, ptt: Ptt) -> None:
        result = ptt("--debug", "nonsense", status=1)
        assert "Traceback" in result.stderr
        assert "UsageError" in result.stderr


class TestMain:
    """`main` turns each end of a command into a message and an exit status."""

    @pytest.fixture
    def command(self, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
        """Return the module of a command; a test may replace its `run`."""
        from nptltrace.cli.commands import config

        monkeypatch.setattr(config, "run", lambda args: 0)
        return config

    def end_with(self, command: ModuleType, error: BaseException) -> None:
        def run(args: object) -> int:
            raise error

        command.run = run  # type: ignore[attr-defined] # undone by the fixture

    def test_status_is_that_of_the_command(
        self, command: ModuleType, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(command, "run", lambda args: 42)
        assert cli.main(["config"]) == 42

    @pytest.mark.parametrize(
        ("error", "status", "message"),
        [
            (UsageError("no\nsuch thing"), 2, "ptt: error: no such thing\n"),
            (PermissionError(13, "Permission denied", "/x"), 2, "ptt: error: /x: Permission"),
            (OSError(28, "No space left on device"), 2, "ptt: error: No space left on device\n"),
            (OSError(28, "Writing. Detail: [errno 28] No space"), 2, "ptt: error: No space\n"),
            (KeyboardInterrupt(), 130, ""),
            (ZeroDivisionError("oh"), 70, "ptt: internal error: ZeroDivisionError: oh (--debug"),
        ],
        ids=["usage", "system", "nameless", "Arrow", "interrupt", "bug"],
    )
    def test_an_error_becomes_a_message_and_a_status(
        self,
        command: ModuleType,
        capsys: pytest.CaptureFixture[str],
        error: BaseException,
        status: int,
        message: str,
    ) -> None:
        self.end_with(command, error)
        assert cli.main(["config"]) == status
        assert capsys.readouterr().err.startswith(message)

    def test_debug_raises_the_error(self, command: ModuleType) -> None:
        self.end_with(command, ZeroDivisionError())
        with pytest.raises(ZeroDivisionError):
            cli.main(["config", "--debug"])

    @pytest.mark.parametrize(
        ("args", "verbosity"),
        [
            (["config"], 0),
            (["-v", "config"], 1),
            (["config", "-vv"], 2),
            (["-v", "config", "-v"], 2),
            (["config", "-q"], -1),
            (["-q", "config", "-v"], 0),
        ],
        ids=str,
    )
    def test_verbosity_counts_options(
        self,
        command: ModuleType,
        monkeypatch: pytest.MonkeyPatch,
        args: list[str],
        verbosity: int,
    ) -> None:
        monkeypatch.setattr(command, "run", lambda parsed: parsed.verbosity + 10)
        assert cli.main(args) == verbosity + 10

    def test_version(self, ptt: Ptt) -> None:
        assert ptt("-V").stdout == f"ptt {nptltrace.__version__}\n"


class TestPipe:
    """A reader that goes away causes no error message."""

    def test_a_closed_output_ends_ptt_quietly(self, ptt: Ptt) -> None:
        reader, writer = os.pipe()
        os.close(reader)
        with os.fdopen(writer) as stdout:
            result = subprocess.run(
                ptt.command("--help"),
                env=ptt.environment(),
                stdout=stdout,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                check=False,
            )
        assert result.returncode == 128 + signal.SIGPIPE
        assert not result.stderr


class TestPackage:
    """The package loads its public names on first use."""

    def test_every_public_name_loads(self) -> None:
        for name in nptltrace.__all__:
            assert getattr(nptltrace, name) is not None
        assert set(nptltrace.__all__) <= set(dir(nptltrace))

    def test_an_unknown_name_is_an_error(self) -> None:
        with pytest.raises(AttributeError, match="nonsense"):
            nptltrace.nonsense  # noqa: B018 -- asking is the test


@pytest.mark.parametrize(
    ("to", "why"), [("&-", "Bad file descriptor"), ("/dev/full", "No space left on device")]
)
@pytest.mark.parametrize("command", ["--help", "config --handlers"])
def test_an_output_that_cannot_be_written_is_an_error(
    ptt: Ptt, command: str, to: str, why: str
) -> None:
    message = subprocess.run(
        ["sh", "-c", f'"$0" -m nptltrace {command} >{to}', sys.executable],
        env=ptt.environment(),
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert message.returncode == 2
    assert message.stderr == f"ptt: error: {why}\n"


def test_a_program_without_standard_streams_is_recorded(ptt: Ptt, tmp_path: Path) -> None:
    script = '"$0" -m nptltrace record -o "$1" -- sh -c "exit 7" <&- >&- 2>&-'
    message = subprocess.run(
        ["sh", "-c", script, sys.executable, tmp_path / "run.ptt"],
        env=ptt.environment(),
        timeout=60,
        check=False,
    )
    assert message.returncode == 7
    assert (tmp_path / "run.ptt" / "metadata").read_text().startswith("/* CTF 1.8 */")


class TestHelpCommand:
    """`ptt help` prints the text of `--help`."""

    def test_help_of_ptt_and_of_a_command(self, ptt: Ptt) -> None:
        assert ptt("help").stdout == ptt("--help").stdout
        assert ptt("help", "report").stdout == ptt("report", "--help").stdout

    def test_help_of_an_unknown_command_suggests_one(self, ptt: Ptt) -> None:
        assert "did you mean report?" in ptt("help", "repotr", status=2).stderr
