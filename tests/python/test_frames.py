"""Functions of Python in recorded stacks: the call site of a wait is a line of the source."""

from __future__ import annotations

import ctypes
import json
import re
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

import pytest

import nptltrace
from nptltrace.catalog._cpython import DEBUG_WORDS, VERSIONS
from nptltrace.hang.stack.cpython_layouts import DEBUG_SIZE, debug_layout
from tests.hang.test_cpython import interpreters, minor_of
from tests.support import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Ptt, Recorder

# The waiting thread must start to wait before another thread wakes it.
pytestmark = pytest.mark.alone

PROGRAM = ROOT / "tests" / "programs" / "python_waits.py"
PLACES = ROOT / "tests" / "programs" / "python_many_places.py"
BROKEN = ROOT / "tests" / "programs" / "python_broken_frames.py"
# The program's own pause is twice as long.
LONG_NS = 30_000_000


class Stacks:
    """The stacks of the waits of a trace.

    Args:
        trace: The trace.
    """

    def __init__(self, trace: Path) -> None:
        with nptltrace.open(trace) as traces:
            self.waits = traces.table("waits").to_pylist()
            self.sites = {row["site_id"]: row for row in traces.table("sites").to_pylist()}
            self.stacks = {row["stack_id"]: row for row in traces.table("stacks").to_pylist()}

    def place(self, stack: str | None) -> str:
        """Return the call site of a stack, as a report shows it."""
        return str(self.sites[self.stacks[stack]["site_id"]]["site"]) if stack else ""

    def functions(self, stack: str) -> list[str]:
        """Return the frames of a stack, the innermost first."""
        return [str(self.sites[frame]["site"]) for frame in self.stacks[stack]["frames"]]


def marked(path: Path, mark: str) -> set[str]:
    """Return the lines that end in a mark, as a report shows them."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return {f"({path.name}:{n})" for n, line in enumerate(lines, 1) if line.endswith(f"# {mark}")}


@pytest.mark.parametrize("python", interpreters())
def test_waits_are_at_the_marked_lines(python: str, record: Recorder, tmp_path: Path) -> None:
    minor = minor_of(python)
    if minor not in {*VERSIONS, *DEBUG_WORDS}:
        pytest.skip(f"frames of Python 3.{minor} are not read")
    stacks = Stacks(record(python, PROGRAM, tmp_path, options=("--stacks", "64")))
    long = [wait for wait in stacks.waits if wait["dur_ns"] > LONG_NS]
    places = {stacks.place(wait["stack_id"]).split(" ")[-1] for wait in long}
    lines = marked(PROGRAM, "waits") | {"(made.txt:4)", "(packed.py:3)"}
    assert lines <= places, sorted(lines - places)
    # No function of the interpreter is the call site of a wait for the program's lock.
    found = {stacks.place(w["stack_id"]) for w in stacks.waits if w["kind"] == "semaphore"}
    assert not [place for place in found if "PyThread" in place or "Eval" in place], found
    if minor >= 11:
        names = {place.split(" ")[0] for place in found}
        assert {"Store.__init__", "Store.value", "generator.<locals>.numbers", "über"} <= names
        ends = [stacks.place(w["waker_stack"]) for w in long if w["kind"] == "semaphore"]
        assert any(place.startswith("later") for place in ends), ends


def test_frames_are_in_the_order_of_calls(record: Recorder, tmp_path: Path) -> None:
    stacks = Stacks(record(sys.executable, PROGRAM, tmp_path, options=("--stacks", "64")))
    found = [
        [re.split(r"[+ ]", frame)[0] for frame in stacks.functions(wait["stack_id"])]
        for wait in stacks.waits
        if wait["dur_ns"] > LONG_NS and wait["stack_id"]
    ]

    # Python functions below and above C functions: libraries stay, and the interpreter is left out.
    inner, outer = "called_by_a_library.<locals>.compare", "called_by_a_library"
    names = next(names for names in found if inner in names)
    between = names[names.index(inner) : names.index(outer)]
    assert any("sort" in name for name in between), names
    assert "ffi_call" in between or any("ctypes" in name for name in between), names
    assert names.index("Thread.run") > names.index(outer)
    assert not [name for name in names[names.index(inner) :] if "Eval" in name]

    down = next(names for names in found if "recursion.<locals>.down" in names)
    assert down.count("recursion.<locals>.down") > 50
    made = next(names for names in found if "Store.__init__" in names)
    assert made[made.index("Store.__init__") + 1] == "methods"


def test_frames_of_python_can_be_left_out(record: Recorder, tmp_path: Path) -> None:
    options = ("--stacks", "64", "--python", "off")
    stacks = Stacks(record(sys.executable, PROGRAM, tmp_path, options=options))
    assert not any(".py:" in row["site"] for row in stacks.sites.values())


def test_report_names_lines(ptt: Ptt, record: Recorder, tmp_path: Path) -> None:
    trace = record(sys.executable, PROGRAM, tmp_path)
    text = ptt("report", "--by", "site", "-n", "0", trace).stdout
    assert "again_by_another (python_waits.py:" in text


def test_an_event_of_the_program_is_at_its_line(record: Recorder, tmp_path: Path) -> None:
    script = tmp_path / "says.py"
    script.write_text(
        f"import sys\nsys.path.insert(0, {str(ROOT / 'src')!r})\nimport nptltrace\n"
        "def report():\n    nptltrace.user_event('here')\nreport()\n"
    )
    with nptltrace.open(record(sys.executable, script)) as traces:
        query = "select stack_sites.site from events join stack_sites using (run_id, stack_id)"
        sites = traces.sql(f"{query} where event = 'USER'").to_pylist()
    assert sites == [{"site": "report (says.py:5)"}]


def own_layout() -> dict[str, int]:
    """Return the offsets of fields in this interpreter."""
    minor = sys.version_info.minor
    if minor in VERSIONS:
        return VERSIONS[minor]
    runtime = ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, "_PyRuntime"))
    layout = debug_layout(minor, ctypes.string_at(runtime, DEBUG_SIZE))
    assert layout is not None
    return asdict(layout)


@pytest.mark.parametrize("seed", range(3))
def test_broken_frames_are_not_read(record: Recorder, seed: int) -> None:
    layout = json.dumps(own_layout())
    stacks = Stacks(record(sys.executable, BROKEN, layout, str(seed), "400"))
    places = {stacks.place(wait["stack_id"]) for wait in stacks.waits}
    assert any(place.startswith("break_and_wait (python_broken_frames.py:") for place in places)


@pytest.mark.parametrize("python", interpreters())
def test_similar_stacks_keep_their_own_lines(python: str, record: Recorder, tmp_path: Path) -> None:
    """PTT does not confuse stacks with the same outer frames."""
    if minor_of(python) not in {*VERSIONS, *DEBUG_WORDS}:
        pytest.skip("frames of this version are not read")
    message = tmp_path / "said.txt"
    shell = 'exec "$@" > "$0"'
    stacks = Stacks(record("sh", "-c", shell, message, python, PLACES, "1", "400"))
    tid, *places = message.read_text(encoding="utf-8").split()
    waits = sorted(stacks.waits, key=lambda wait: wait["t_ns"])
    of_thread = [w for w in waits if w["tid"] == int(tid) and w["kind"] == "semaphore"]
    functions = [stacks.place(wait["stack_id"]) for wait in of_thread]
    # A new thread waits in the interpreter until its creator has registered it.
    found = [name.split(" ")[-1] for name in functions if not name.startswith("thread_run ")]
    found = [place for place in found if place not in marked(PLACES, "asks")]
    # A lock that was released before the call causes no wait; the other waits agree with the
    # program.
    assert len(found) > 50
    left = iter(places)
    assert all(place in left for place in found), (found, places)
