"""Manual pages made from the parsers: `python -m nptltrace.cli._man DIRECTORY`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from nptltrace import __version__, cli
from nptltrace.cli._describe import arguments

if TYPE_CHECKING:
    from nptltrace.cli._describe import Argument

__all__ = ["command_page", "main", "top_page"]

_STATUS = {
    "0": "Done.",
    "1": "Done, and something was found by a command that looks for faults.",
    "2": "Wrong usage, or input that cannot be used; one line on standard error says why.",
}


def command_page(name: str) -> str:
    """Return the manual page of one command."""
    command = cli.load_command(name)
    entries = arguments(cli.command_parser(name))
    lines = _head(f"ptt-{name}", command.SUMMARY)
    lines += [".SH SYNOPSIS", f".B ptt {_text(name)}", *map(_brief, entries)]
    description = getattr(command, "DESCRIPTION", "")
    if description:
        lines += [".SH DESCRIPTION", *_paragraphs(description)]
    lines += [".SH OPTIONS", *(line for entry in entries for line in _entry(entry))]
    lines += [".SH EXAMPLES", ".nf", *map(_line, command.EXAMPLE.strip().splitlines()), ".fi"]
    lines += _see_also(["ptt"])
    return "\n".join(lines) + "\n"


def top_page() -> str:
    """Return the manual page of `ptt` itself."""
    parser = cli.top_parser()
    lines = _head("ptt", "the POSIX Threads Trace Toolkit")
    lines += [".SH SYNOPSIS", ".B ptt", r"[\fIoptions\fR] \fICOMMAND\fR ..."]
    lines += [".SH DESCRIPTION", *_paragraphs(parser.description or "")]
    lines.append(".SH COMMANDS")
    for name in cli.command_names():
        lines += [".TP", rf"\fB{_text(name)}\fR", _line(cli.load_command(name).SUMMARY)]
    lines += [".SH OPTIONS"]
    lines += [line for entry in arguments(parser) if entry.names for line in _entry(entry)]
    lines.append(".SH EXIT STATUS")
    for status, meaning in _STATUS.items():
        lines += [".TP", rf"\fB{status}\fR", _line(meaning)]
    lines += _see_also([f"ptt-{name}" for name in cli.command_names()])
    return "\n".join(lines) + "\n"


def _head(title: str, summary: str) -> list[str]:
    """Return the lines that every page starts with."""
    return [
        f'.TH {_text(title.upper())} 1 "" "ptt {__version__}" "POSIX Threads Trace Toolkit"',
        ".SH NAME",
        rf"{_text(title)} \- {_text(summary)}",
    ]


def _see_also(titles: list[str]) -> list[str]:
    """Return the section that names other pages."""
    pages = [rf".BR {_text(title)} (1)" for title in titles]
    return [".SH SEE ALSO", *(f"{page} ," for page in pages[:-1]), *pages[-1:]]


def _brief(entry: Argument) -> str:
    """Return an argument as it stands in the synopsis."""
    value = "" if entry.value is None else rf"\fI{_text(entry.value)}\fR"
    if not entry.names:
        return value
    return rf"[\fB{_text(entry.names[0])}\fR{' ' if value else ''}{value}]"


def _entry(entry: Argument) -> list[str]:
    """Return an argument with its help."""
    value = "" if entry.value is None else rf"\fI{_text(entry.value)}\fR"
    names = ", ".join(rf"\fB{_text(name)}\fR" for name in entry.names)
    return [".TP", " ".join(part for part in (names, value) if part), _line(entry.help)]


def _paragraphs(text: str) -> list[str]:
    """Return text whose indented blocks keep their lines, and whose other blocks are filled."""
    lines = []
    for block in text.strip("\n").split("\n\n"):
        rows = block.splitlines()
        if all(row.startswith(" ") for row in rows):
            lines += [".PP", ".nf", *map(_line, rows), ".fi"]
        else:
            lines += [".PP", *(_line(row.strip()) for row in rows)]
    return lines


def _line(text: str) -> str:
    """Return a line of text that roff takes for nothing else."""
    plain = _text(text)
    return rf"\&{plain}" if plain.startswith((".", "'")) else plain


def _text(text: str) -> str:
    """Return text with what means something to roff taken literally."""
    return text.replace("\\", r"\e").replace("-", r"\-")


def main(directory: Path) -> None:
    """Write all pages into `directory`."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "ptt.1").write_text(top_page(), encoding="utf-8")
    for name in cli.command_names():
        page = command_page(name)
        (directory / f"ptt-{name}.1").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
