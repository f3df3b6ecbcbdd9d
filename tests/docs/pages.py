"""Reads the examples from Markdown pages, runs them, and compares their output.

In a page, a fenced `console` block holds commands on lines that begin with `$ `. Continued lines
begin with `> `. The output follows each command. A line `...` stands for any lines, and `...`
within a line for any text. Numbers, addresses, durations and sizes match others of their kind, so
that pages can show real output. A command without output on the page may print anything.

Comments in these forms, each on its own line, give orders to the runner that readers need not see:

    <!-- test: setup COMMAND -->    run this first, or here
    <!-- test: needs PROGRAM -->    skip the page where PROGRAM is not installed
    <!-- test: exits STATUS -->     the next command ends with this status, not 0
    <!-- test: skip REASON -->      leave out the next block
    <!-- test: in any order -->     the lines of the next block are among those that are printed
    <!-- file: NAME -->             the next block, of any language, is the content of this file

All examples of a page run in one shell, in one empty directory.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from textwrap import dedent
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["Page", "Step", "matches", "normal", "read_page", "script", "split_output"]

_COMMENT = re.compile(r"<!-- (test|file): (\S+)\s*(.*?) ?-->")
_FENCE = re.compile(r"(?P<fence>`{3,})(?P<language>[^`\s]*).*")
_MARK = "@@step"
_ANY = "..."
# Pages leave out messages of the shell about its jobs, and of ptt about other recordings.
_NOISE = re.compile(
    r"\[\d+\][+-]?\s+(Done|Exit|Killed|Terminated|Interrupt|Running)\b"
    r"|bash: line .*Killed|ptt: the recording of .* was killed;"
)


@dataclass(slots=True)
class Step:
    """One command of a page.

    Attributes:
        line: The number of its line.
        command: The text that the shell gets.
        shown: The output that the page shows.
        exits: The status it must end with.
        any_order: Whether the shown lines may be in any order, among other lines.
    """

    line: int
    command: str
    shown: list[str] = field(default_factory=list)
    exits: int = 0
    any_order: bool = False

    def agrees(self, printed: Sequence[str]) -> bool:
        """Return whether a command printed the output that the page shows."""
        if not self.any_order:
            return not self.shown or matches(self.shown, printed)
        lines = [line for line in self.shown if line.strip() not in {"", _ANY}]
        return all(any(matches([line], [other]) for other in printed) for line in lines)


@dataclass(slots=True)
class Page:
    """The commands of a page.

    Attributes:
        steps: The commands, in order.
        needs: Programs that the commands need.
    """

    steps: list[Step] = field(default_factory=list)
    needs: list[str] = field(default_factory=list)


def read_page(path: Path) -> Page:
    """Return the examples of a page.

    Raises:
        ValueError: A comment has an unknown form, or a fence is never closed.
    """
    page = Page()
    lines = path.read_text(encoding="utf-8").splitlines()
    reported: dict[str, str] = {}
    number = 0
    while number < len(lines):
        line = lines[number].strip()
        number += 1
        if comment := _COMMENT.fullmatch(line):
            kind, word, rest = comment.groups()
            if kind == "file":
                reported["file"] = word
            elif word == "setup":
                page.steps.append(Step(number, rest))
            elif word == "needs":
                page.needs.append(rest)
            elif word in {"exits", "skip", "in"} and rest:
                reported[word] = rest
            else:
                raise ValueError(f"{path}:{number}: {line}")
        elif fence := _FENCE.fullmatch(line):
            end = number
            while lines[end].strip() != fence["fence"]:
                end += 1
            page.steps += _block(fence["language"], lines[number:end], number + 1, reported)
            number = end + 1
    return page


def _block(language: str, lines: list[str], line: int, reported: dict[str, str]) -> list[Step]:
    """Return the steps of one fenced block; apply the comments before the block and remove them."""
    lines = dedent("\n".join(lines)).splitlines()
    if file := reported.pop("file", None):
        text = "\n".join([*lines, ""])
        return [Step(line, f"cat > {file} <<'@@END'\n{text}@@END")]
    if language != "console":
        return []
    exits, skip, order = (
        int(reported.pop("exits", 0)),
        reported.pop("skip", None),
        reported.pop("in", None),
    )
    if skip:
        return []
    steps = _steps(lines, line)
    steps[0].exits = exits
    for step in steps:
        step.any_order = order is not None
    return steps


def _steps(block: list[str], line: int) -> list[Step]:
    steps: list[Step] = []
    for number, text in enumerate(block, line):
        if text.startswith("$ "):
            steps.append(Step(number, text[2:]))
        elif text.startswith("> ") and steps and not steps[-1].shown:
            steps[-1].command += f"\n{text[2:]}"
        elif steps:
            steps[-1].shown.append(text)
        else:
            raise ValueError(f"line {number}: output before the first command")
    for step in steps:
        while step.shown and not step.shown[-1].strip():
            step.shown.pop()
    return steps


# ---- running ----

# timeout SECONDS COMMAND: pages give a program a few seconds to hang. A busy machine may need more.
# So the command ends when all threads of the program, or of the recorded program, have slept for a
# while.
_TIMEOUT = r"""
timeout() {
    local child target now before= same=0
    shift
    "$@" &
    child=$!
    while kill -0 $child 2>/dev/null && [ $same -lt 4 ]; do
        command sleep 0.3
        target=$(cat /proc/$child/task/$child/children 2>/dev/null)
        now=$(cat $(printf '/proc/%d/task/*/status ' ${target:-$child}) 2>/dev/null |
            grep -E '^(State|voluntary_ctxt)')
        case $now in
        "" | *[RD]\ \(*) same=0 ;;
        "$before") same=$((same + 1)) ;;
        *) same=0 ;;
        esac
        before=$now
    done
    if [ $same -lt 4 ]; then
        wait $child
        return
    fi
    kill $child
    wait $child
    return 124
}
"""
# sleep SECONDS: pages give a recording in the background time to start. A busy machine may need
# more. So the time counts from the start of the recorded program.
_SLEEP = r"""
sleep() {
    local program
    while kill -0 "$!" 2>/dev/null; do
        program=$(cat /proc/$!/task/$!/children 2>/dev/null)
        program=${program%% *}
        [ -n "$program" ] && ! cmp -s /proc/$program/cmdline /proc/$!/cmdline && break
        command sleep 0.1
    done
    command sleep "$1"
}
"""


def script(page: Page) -> str:
    """Return a bash script that runs all steps, and marks the output and the status of each."""
    lines = [
        "exec 2>&1 </dev/null",
        "set -m  # so that $! and %1 can be interrupted",
        "trap 'jobs -p | xargs -r kill; wait' EXIT",
        _TIMEOUT,
        _SLEEP,
    ]
    for number, step in enumerate(page.steps):
        lines += [step.command, f"printf '\\n{_MARK} {number} %d\\n' $?"]
    return "\n".join(lines) + "\n"


def split_output(output: str) -> dict[int, tuple[int, list[str]]]:
    """Return the status and the lines of each step that ended."""
    found: dict[int, tuple[int, list[str]]] = {}
    lines: list[str] = []
    for line in output.splitlines():
        if line.startswith(_MARK):
            _, number, status = line.split()
            while lines and not lines[-1].strip():
                lines.pop()
            found[int(number)] = (int(status), lines)
            lines = []
        elif not _NOISE.match(line):
            lines.append(line)
    return found


# ---- comparing ----

_KINDS = (
    (re.compile(r"\x1b\[[0-9;]*[A-Za-z]|.*\r(?!$)"), ""),
    (re.compile(r"\b0x[0-9a-fA-F]+\b"), "ADDRESS"),
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "UUID"),
    (re.compile(r"\b\d\d:\d\d:\d\d(\.\d+)?\b"), "TIME"),
    # Not line numbers of source files: these must be right in a page.
    (re.compile(r"(?<![\w.:])-?\d[\d,]*(\.\d+)?(?!\w)"), "N"),
    (re.compile(r"\bN (ns|us|ms|s)\b"), "N s"),
    (re.compile(r"\bN (B|kB|MB|GB)\b"), "N B"),
    (re.compile(r"\+N %|× N\b"), "+N %"),  # a growth: PTT prints it as a factor from tenfold on
    (re.compile(r"-{3,}"), "---"),
    (re.compile(r"\s+"), " "),
)


def normal(line: str) -> str:
    """Return a line in which a kind replaces each value that differs from run to run."""
    for pattern, kind in _KINDS:
        line = pattern.sub(kind, line)
    return line.strip()


def matches(shown: Sequence[str], printed: Sequence[str]) -> bool:
    """Return whether the printed lines have the shape of the output on the page."""
    wanted = [_ANY if line.strip() == _ANY else normal(line) for line in shown]
    got = [normal(line) for line in printed]

    @cache
    def from_here(i: int, j: int) -> bool:
        if i == len(wanted):
            return j == len(got)
        if wanted[i] == _ANY:
            return any(from_here(i + 1, k) for k in range(j, len(got) + 1))
        return j < len(got) and _line_matches(wanted[i], got[j]) and from_here(i + 1, j + 1)

    return from_here(0, 0)


def _line_matches(wanted: str, got: str) -> bool:
    parts = (re.escape(part.strip()) for part in wanted.split(_ANY))
    return re.fullmatch(r"\s?.*?".join(parts), got) is not None
