"""Manual pages, generated from the parsers: `python -m nptltrace.cli.pages.man DIRECTORY`."""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

from nptltrace import cli
from nptltrace._version import __date__, __version__
from nptltrace.cli.pages.describe import arguments

if TYPE_CHECKING:
    from nptltrace.cli.pages.describe import Argument

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
    # Positional arguments come last, like on a command line.
    synopsis = sorted(entries, key=lambda entry: not entry.names)
    lines += [".SH SYNOPSIS", f".B ptt {_text(name)}", *map(_brief, synopsis)]
    description = getattr(command, "DESCRIPTION", "")
    if description:
        lines += [".SH DESCRIPTION", *_paragraphs(description)]
    lines += [".SH OPTIONS", *(line for entry in entries for line in _entry(entry))]
    lines += [".SH EXAMPLES", ".nf", *map(_line, command.EXAMPLE.strip().splitlines()), ".fi"]
    lines += _see_also([("ptt", 1), ("nptltrace", 7)])
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
    pages = [(f"ptt-{name}", 1) for name in cli.command_names()]
    lines += _see_also([*pages, ("nptl_trace.h", 3), ("nptltrace", 7)])
    return "\n".join(lines) + "\n"


def _head(title: str, summary: str) -> list[str]:
    """Return the first lines of a page."""
    version = f'{__date__} "ptt {__version__}"'
    return [
        f'.TH {_text(title.upper())} 1 {version} "POSIX Threads Trace Toolkit"',
        ".SH NAME",
        rf"{_text(title)} \- {_text(summary)}",
    ]


def _see_also(pages: list[tuple[str, int]]) -> list[str]:
    """Return the section SEE ALSO, from titles and sections of other pages."""
    lines = [rf".BR {_text(title)} ({section})" for title, section in pages]
    return [".SH SEE ALSO", *(f"{line} ," for line in lines[:-1]), *lines[-1:]]


def _brief(entry: Argument) -> str:
    """Return an argument for the synopsis."""
    value = "" if entry.value is None else rf"\fI{_text(entry.value)}\fR"
    if not entry.names:
        if entry.is_command:
            return rf"[\-\-] {value} [\fIARG\fR...]"
        return f"[{value}]" if entry.is_optional else value
    return rf"[\fB{_text(entry.names[0])}\fR{' ' if value else ''}{value}]"


def _entry(entry: Argument) -> list[str]:
    """Return an argument with its help."""
    value = "" if entry.value is None else rf"\fI{_text(entry.value)}\fR"
    names = ", ".join(rf"\fB{_text(name)}\fR" for name in entry.names)
    head = " ".join(part for part in (names, value) if part)
    return [".TP", head, *map(_line, wrap(entry.help, 72))]


def _paragraphs(text: str) -> list[str]:
    """Return filled paragraphs; indented blocks keep their lines."""
    lines: list[str] = []
    for block in text.strip("\n").split("\n\n"):
        rows = block.splitlines()
        lines += [".PP"] if lines else []  # a section begins a paragraph by itself
        if all(row.startswith(" ") for row in rows):
            lines += [".nf", *map(_line, rows), ".fi"]
        else:
            lines += map(_line, wrap(" ".join(block.split()), 72))
    return lines


def _line(text: str) -> str:
    """Return a line of text that roff does not take for a request."""
    plain = _text(text)
    return rf"\&{plain}" if plain.startswith((".", "'")) else plain


def _text(text: str) -> str:
    """Return text with the special characters of roff escaped."""
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
