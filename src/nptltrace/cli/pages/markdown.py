"""Pages of the commands: `python -m nptltrace.cli.pages.markdown DIRECTORY` renews them.

The part of a page between two markers is generated from the parser. The text around it, such as
examples, is written by hand and stays.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from nptltrace import cli
from nptltrace.cli.pages.describe import arguments

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nptltrace.cli.pages.describe import Argument

__all__ = ["main", "marked", "page", "renewed"]

BEGIN = "<!-- generated from the parser by `make commands`: do not edit -->"
END = "<!-- end of the generated part -->"


def page(name: str) -> str:
    """Return the generated part of a command's page."""
    command = cli.load_command(name)
    entries = arguments(cli.command_parser(name))
    lines = [f"# ptt {name}", "", f"{command.SUMMARY[0].upper()}{command.SUMMARY[1:]}."]
    description = getattr(command, "DESCRIPTION", "").strip()
    if description:
        lines += ["", *_blocks(description)]
    lines += [] if description else [""]
    synopsis = ["ptt", name, "[OPTION…]", *(_positional(e) for e in entries if not e.names)]
    lines += ["```text", " ".join(synopsis), "```", "", "| option | |", "|---|---|"]
    lines += [f"| {_term(entry)} | {_text(entry.help)} |" for entry in entries]
    return "\n".join([*lines, ""])


def renewed(name: str, text: str) -> str:
    """Return a page with its generated part renewed.

    Args:
        name: The command.
        text: The current page; empty for a new page.
    """
    return marked(text, page(name))


def marked(text: str, generated: str, begin: str = BEGIN, end: str = END) -> str:
    """Return a text with another part between two markers.

    Args:
        text: The text; empty for a new text, which then has only the generated part.
        generated: The new part.
        begin: The first marker.
        end: The last marker.

    Raises:
        ValueError: The text has no such markers.
    """
    before, begins, rest = text.partition(begin)
    _, ends, after = rest.partition(f"{end}\n")
    if text and not (begins and ends):
        raise ValueError(f"no part between {begin} and {end}")
    return f"{before}{begin}\n\n{generated}\n{end}\n{after}"


def _blocks(text: str) -> Iterator[str]:
    """Yield the paragraphs of a description; an indented paragraph is a list, an item per line."""
    for block in _text(text).split("\n\n"):
        if not block.startswith(" "):
            yield from (*block.splitlines(), "")
            continue
        for line in block.splitlines():
            name, _, about = line.strip().partition(" ")
            yield f"- `{name}`: {about.strip()}"
        yield ""


def _positional(entry: Argument) -> str:
    if entry.is_command:
        return f"{entry.value} [ARG…]"
    return f"[{entry.value}]" if entry.is_optional else str(entry.value)


def _term(entry: Argument) -> str:
    names = ", ".join(f"`{name}`" for name in entry.names)
    value = "" if entry.value is None else f"`{entry.value}`".replace("|", "\\|")
    return f"{names} {value}".strip()


def _text(text: str) -> str:
    """Return text with the special characters of Markdown escaped."""
    for mark in ("<", "*", "_", "|"):
        text = text.replace(mark, f"\\{mark}")
    return text


def main(directory: Path) -> None:
    """Renew all pages in `directory`, and create missing pages."""
    for name in cli.command_names():
        path = directory / f"{name}.md"
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        path.write_text(renewed(name, text), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
