"""Scripted edits of glibc's sources: insertions by functions and statements, not by lines.

An edit sees a C file as a list of tokens, so spaces, line ends and comments do not matter. It puts
text between tokens and never adds a line. So line numbers stay the same, and with empty insertions
the compiler's output stays the same, too.
"""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, Any

from nptltrace._dataclasses import dataclass, field
from nptltrace.errors import PttError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Edit", "EditError", "apply_edits", "edit_text", "load_edits"]

_TOKEN = re.compile(
    r"""
    (?P<skip>\s+|\\\n|/\*.*?\*/|//[^\n]*)
    |"(?:\\.|[^"\\])*"
    |'(?:\\.|[^'\\])*'
    |[A-Za-z_]\w*
    |[0-9][\w.]*
    |\#\#?|->|\+\+|--|<<=?|>>=?|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|\.\.\.
    |.
    """,
    re.VERBOSE | re.DOTALL,
)
_ANYTHING = "@"
_OPENING = {"(": ")", "[": "]", "{": "}"}


class EditError(PttError):
    """A required place of an edit is not in the source."""


@dataclass(frozen=True)
class Edit:
    """One insertion.

    Attributes:
        point: The trace point, for messages.
        files: Paths in the source tree. Paths that do not exist are passed over.
        function: Names of functions. The edit applies to each function that the file defines.
            Empty: the edit applies to the whole file.
        find: Alternatives of C text. The edit applies to each match. `@` stands for the shortest
            balanced run of tokens. Empty: the start of the function's body matches.
        before: Text to put before the match.
        after: Text to put after the match.
        replace: Identifiers in the match, with their replacements.
        include: A header to include before the last `#endif` of a header.
        optional: A missing place is no error.
    """

    point: str
    files: tuple[str, ...]
    function: tuple[str, ...] = ()
    find: tuple[str, ...] = ()
    before: str = ""
    after: str = ""
    replace: dict[str, str] = field(default_factory=dict)
    include: str = ""
    optional: bool = False


@dataclass(frozen=True)
class _Token:
    text: str
    start: int
    end: int


def _tuple(value: str | list[str] | None) -> tuple[str, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else tuple(value)


def load_edits(path: Path) -> list[Edit]:
    """Return the edits that a TOML file lists under `[[edit]]`."""
    with path.open("rb") as file:
        entries: list[dict[str, Any]] = tomllib.load(file)["edit"]
    return [
        Edit(
            point=entry["point"],
            files=_tuple(entry["files"]),
            function=_tuple(entry.get("function")),
            find=_tuple(entry.get("find")),
            before=entry.get("before", ""),
            after=entry.get("after", ""),
            replace=entry.get("replace", {}),
            include=entry.get("include", ""),
            optional=entry.get("optional", False),
        )
        for entry in entries
    ]


def _tokens(text: str) -> list[_Token]:
    return [
        _Token(match.group(), match.start(), match.end())
        for match in _TOKEN.finditer(text)
        if match.lastgroup != "skip"
    ]


def _closing(tokens: list[_Token], at: int) -> int:
    """Return the index of the bracket that closes the bracket at `at`, or the end."""
    depth = 0
    for index in range(at, len(tokens)):
        if tokens[index].text in _OPENING:
            depth += 1
        elif tokens[index].text in {")", "]", "}"}:
            depth -= 1
            if depth == 0:
                return index
    return len(tokens)


def _bodies(tokens: list[_Token], names: tuple[str, ...]) -> list[tuple[int, int]]:
    """Return the bodies of functions: index of `{`, index of its `}`."""
    bodies = []
    index = 0
    while index < len(tokens):
        token = tokens[index]
        if token.text == "{":
            index = _closing(tokens, index)
        elif token.text in names and index + 1 < len(tokens) and tokens[index + 1].text == "(":
            after = _closing(tokens, index + 1) + 1
            if after < len(tokens) and tokens[after].text == "{":
                end = _closing(tokens, after)
                bodies.append((after, end))
                index = end
        index += 1
    return bodies


def _match(tokens: list[_Token], at: int, end: int, pattern: list[str]) -> int | None:
    """Return the index after the match of `pattern` that starts at `at`, or None."""
    index = at
    for position, wanted in enumerate(pattern):
        if wanted == _ANYTHING:
            rest = pattern[position + 1 :]
            while index < end:
                behind = _match(tokens, index, end, rest)
                if behind is not None:
                    return behind
                if tokens[index].text in {")", "]", "}"}:
                    return None
                index = _closing(tokens, index) + 1 if tokens[index].text in _OPENING else index + 1
            return None
        if index >= end or tokens[index].text != wanted:
            return None
        index += 1
    return index


def _places(tokens: list[_Token], span: tuple[int, int], edit: Edit) -> list[tuple[int, int]]:
    """Return the matches of an edit as runs of tokens: first index, index after the last token."""
    begin, end = span
    places = []
    for pattern in ([token.text for token in _tokens(text)] for text in edit.find):
        index = begin
        while index < end:
            behind = _match(tokens, index, end, pattern)
            if behind is None:
                index += 1
            else:
                places.append((index, behind))
                index = behind
    return places


def _insertions(text: str, edit: Edit) -> list[tuple[int, int, str]]:
    """Return the changes of an edit to a text: start, end, new text."""
    if edit.include:
        last = text.rfind("#endif")
        return [(last, last, f"#include <{edit.include}>\n")] if last >= 0 else []
    tokens = _tokens(text)
    spans = _bodies(tokens, edit.function) if edit.function else [(-1, len(tokens))]
    changes = []
    for begin, end in spans:
        if not edit.find:
            changes.append((tokens[begin].end, tokens[begin].end, f" {edit.after}"))
        for first, behind in _places(tokens, (begin + 1, end), edit):
            start, stop = tokens[first].start, tokens[behind - 1].end
            if edit.before:
                changes.append((start, start, f"{edit.before} "))
            if edit.after:
                changes.append((stop, stop, f" {edit.after}"))
            changes += [
                (token.start, token.end, edit.replace[token.text])
                for token in tokens[first:behind]
                if token.text in edit.replace
            ]
    return changes


def edit_text(text: str, edits: list[Edit]) -> tuple[str, list[Edit]]:
    """Edit a text.

    All edits look for their places in the original text, so the order of the edits does not matter.

    Returns:
        The new text, and the edits that found no place.
    """
    changes: list[tuple[int, int, str]] = []
    missed = []
    for edit in edits:
        insertions = _insertions(text, edit)
        changes += insertions
        if not insertions:
            missed.append(edit)
    # From the last place to the first: no position moves. sorted() keeps the order at equal places.
    for start, end, new in sorted(changes, key=lambda change: change[:2], reverse=True):
        text = text[:start] + new + text[end:]
    return text, missed


def apply_edits(source: Path, edits: list[Edit]) -> list[str]:
    """Edit a source tree in place.

    Args:
        source: The root of an unedited glibc source tree.
        edits: The edits.

    Returns:
        The trace points without a place from any edit, sorted.

    Raises:
        EditError: An edit that is not optional found no place.
    """
    by_file: dict[str, list[Edit]] = {}
    for edit in edits:
        for name in edit.files:
            by_file.setdefault(name, []).append(edit)
    done = set()
    for name, wanted in by_file.items():
        path = source / name
        if not path.is_file():
            continue
        text, missed = edit_text(path.read_text("utf-8", "surrogateescape"), wanted)
        path.write_text(text, "utf-8", "surrogateescape")
        done |= {id(edit) for edit in wanted} - {id(edit) for edit in missed}
    left = [edit for edit in edits if id(edit) not in done]
    needed = [edit for edit in left if not edit.optional]
    if needed:
        places = ", ".join(f"{edit.point} ({edit.files[0]})" for edit in needed)
        raise EditError(f"this glibc differs where these trace points belong: {places}")
    placed = {edit.point for edit in edits if id(edit) in done}
    return sorted({edit.point for edit in left} - placed)
