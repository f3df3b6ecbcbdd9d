"""The page of the findings, for `make docs`."""

from __future__ import annotations

from importlib import import_module
from itertools import groupby
from typing import TYPE_CHECKING

from nptltrace.findings.facts import FACTS
from nptltrace.findings.kind import kinds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nptltrace.findings.kind import Kind

__all__ = ["MARK", "filled", "page"]

MARK = "<!-- kinds of findings: put here by conf.py, from the modules that define them -->\n"


def page() -> str:
    """Return the kinds of findings as Markdown."""
    built_in = [kind for kind in kinds().values() if kind.group]
    lines = ["| kind | severity | |", "|---|---|---|"]
    lines += [
        f"| [`{kind.name}`](#{kind.name}) | {kind.severity} | {_summary(kind)} |"
        for kind in built_in
    ]
    for group, members in groupby(built_in, key=lambda kind: kind.group):
        lines += ["", f"## {_title(group)}"]
        for kind in members:
            lines += ["", *_kind(kind)]
    lines += [
        "",
        "## Facts",
        "",
        "What the checker sees of a trace, and kinds of findings read:",
        "",
    ]
    lines += [f"- `{name}`: {meaning}" for name, meaning in FACTS.items()]
    return "\n".join(lines) + "\n"


def _summary(kind: Kind) -> str:
    return kind.text.partition("\n\n")[0].replace("\n", " ")


def _title(group: str) -> str:
    text = import_module(f"nptltrace.findings.{group}").__doc__ or group
    return text.partition(":")[0]


def _kind(kind: Kind) -> Iterator[str]:
    yield f"### {kind.name}"
    yield ""
    yield f"*{kind.severity.capitalize()}.* {kind.text}"


def filled(text: str) -> str:
    """Return the page with the kinds of findings in place of the mark."""
    before, _, after = text.partition(MARK)
    return f"{before}{page()}{after}"
