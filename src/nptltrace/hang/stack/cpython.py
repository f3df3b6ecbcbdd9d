"""The Python functions in the threads of a CPython process, read from its memory."""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING, NamedTuple

from nptltrace._dataclasses import dataclass
from nptltrace.hang.stack.cpython_layouts import (
    DEBUG_SIZE,
    LAYOUTS,
    debug_free_threaded,
    debug_layout,
)
from nptltrace.hang.stack.cpython_objects import LOCALS, PythonObjects
from nptltrace.trace.code.python_lines import line_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nptltrace.hang.stack.cpython_layouts import Layout
    from nptltrace.hang.stack.names import Names
    from nptltrace.hang.targets.target import Target
    from nptltrace.trace.code.modules import Module

__all__ = ["InsideFrame", "PythonFrame", "PythonRun", "Pythons"]

_NAME = re.compile(r"(?:lib)?python3\.(\d+)[a-z]*(?:\.so[.0-9]*)?")
_PROGRAMS, _PYTHON_3 = ("python", "python3"), 3
_DEPTH = 1000
_THREADS = 1 << 16
_TEXT_MAX = 1 << 12
_LINES_MAX = 1 << 20
# A frame with this owner or a larger value stands for a call by C.
_OWNED_BY_C = 3
_STACK_REF_MARKS = 3
# In an object: type and first field. In a type: the name. In a function: the code since 3.10.
_TYPE, _FIRST_FIELD, _TYPE_NAME, _CODE, _CODE_MOVED = 8, 16, 24, 48, 10
_NAME_MAX = 128
# The offset of a string's length, if objects begin with a count and a type only.
_PLAIN_LENGTH = 16
# The first function of a thread of Python.
_THREADING, _BEGINS = "/threading.py", "_bootstrap"


@dataclass(frozen=True, slots=True)
class PythonFrame:
    """A Python function on the stack of a thread.

    Attributes:
        function: The name, qualified if the interpreter has the qualified name.
        file: The source file, without directories.
        line: The current line; 0 if it is not known.
        path: The source file, as the interpreter has it.
        module: Always empty, as the function is in no module of the process.
    """

    function: str
    file: str
    line: int
    path: str
    module: str = ""

    def __str__(self) -> str:
        """Return the text `work (pool.py:88)`."""
        return f"{self.function} ({self.file}:{self.line})"


class PythonRun(NamedTuple):
    """The functions of Python in one call of the interpreter.

    Attributes:
        frames: The functions, the innermost first.
        marker: The address of a frame on the stack of the call, from 3.12 on; 0 if there is none.
    """

    frames: list[PythonFrame]
    marker: int


class InsideFrame(NamedTuple):
    """A frame of a Python function in memory.

    Attributes:
        function: The function.
        address: The address of the frame.
        code: The address of the code object.
        at: The current instruction, as `line_of` counts.
        minor: The minor version of Python 3.
    """

    function: PythonFrame
    address: int
    code: int
    at: int
    minor: int


class Pythons:
    """The Python functions of all threads of a process.

    Args:
        process: The process.
        names: The names in the process.

    Attributes:
        evaluates: The addresses of the interpreter's function that runs Python functions.
        module: The file name of the interpreter's module; empty if there is no interpreter.
        alone: The name of this module says that the module is the interpreter only.
        unknown: The version of an interpreter with unknown structures, as `3.16`, or empty.
    """

    def __init__(self, process: Target, names: Names) -> None:
        self._process = process
        self.evaluates, self.module, self.alone = range(0), "", False
        self.unknown = ""
        self._layout: Layout | None = None
        self._codes: dict[int, tuple[str, str, int, bytes] | None] = {}
        self._states: dict[int, int] = {}
        for module in process.modules:
            name = module.path.rpartition("/")[2]
            match = _NAME.fullmatch(name)
            # A program with another name may contain the interpreter.
            may_be = match is not None or ".so" not in name
            runtime = names.exported(module, "_PyRuntime").start if may_be else 0
            minor = int(match[1]) if match else self._minor(names, module) if runtime else 0
            if runtime and minor:
                self.evaluates = names.exported(module, "_PyEval_EvalFrameDefault")
                self.module, self.alone = name, match is not None or name in _PROGRAMS
                debug = debug_layout(minor, process.read(runtime, DEBUG_SIZE))
                self._layout = debug or LAYOUTS.get(minor)
                if self._layout is not None:
                    self._states = dict(self._threads(runtime, self._layout))
                else:
                    threaded = debug_free_threaded(process.read(runtime, DEBUG_SIZE))
                    self.unknown = f"3.{minor}{'t' if threaded else ''}"
                break

    def of(self, inner_tid: int) -> list[PythonRun]:
        """Return the functions of a thread by calls of the interpreter, the innermost first.

        The result is empty if any part of the stack cannot be read.
        """
        state = self._states.get(inner_tid)
        if state is None or self._layout is None:
            return []
        try:
            return self._runs(state, self._layout)
        except (struct.error, ValueError):
            return []

    def inside(self, inner_tid: int) -> list[InsideFrame]:
        """Return the frames of a thread with their addresses, the innermost first.

        The result is empty if the objects of the interpreter cannot be read.
        """
        state, layout = self._states.get(inner_tid), self._layout
        if state is None or layout is None or layout.minor not in LOCALS:
            return []
        # Objects of free-threaded builds have a longer head.
        if layout.length != _PLAIN_LENGTH:
            return []
        frames: list[InsideFrame] = []
        try:
            for frame in self._frames(state, layout):
                function, code = self._function(frame, layout), self._code_of(frame, layout)
                at = self._at(frame, code, layout)
                frames.append(InsideFrame(function, frame, code, at, layout.minor))
        except (struct.error, ValueError):
            return []
        return frames

    def text(self, address: int) -> str:
        """Return the text of a Python string, empty for another object."""
        return (self._text(address, self._layout) or "") if self._layout is not None else ""

    def kind_of(self, address: int) -> str:
        """Return the name of the class of an object.

        Raises:
            struct.error: The memory cannot be read.
        """
        return self._c_string(self._word(self._word(address + _TYPE) + _TYPE_NAME))

    def thread_name(self, inner_tid: int) -> str:
        """Return the name of a `threading.Thread`, empty for another kind of thread."""
        state, layout = self._states.get(inner_tid), self._layout
        if state is None or layout is None or layout.minor not in LOCALS:
            return ""
        try:
            return self._thread_name(state, layout)
        except (struct.error, ValueError, StopIteration):
            return ""

    def _thread_name(self, state: int, layout: Layout) -> str:
        *_, outermost = self._frames(state, layout)
        function = self._function(outermost, layout)
        if not function.path.endswith(_THREADING) or not function.function.endswith(_BEGINS):
            return ""
        # The first variable of the outermost function is the `Thread`.
        thread = self._word(outermost + LOCALS[layout.minor])
        attributes = PythonObjects(layout.minor, self._process.read).attributes(thread)
        named = next(value for key, value in attributes if self._text(key, layout) == "_name")
        return self._text(named, layout) or ""

    def function_name(self, address: int) -> str:
        """Return the name of a function in Python or C by the address of its object.

        For another object, return the name of its class.
        """
        layout = self._layout
        try:
            kind = self.kind_of(address)
            if kind in {"method", "functools.partial"}:
                return self.function_name(self._word(address + _FIRST_FIELD))
            if kind == "builtin_function_or_method":
                return self._c_string(self._word(self._word(address + _FIRST_FIELD)))
            if kind != "function" or layout is None:
                return kind
            at = _FIRST_FIELD if layout.minor < _CODE_MOVED else _CODE
            known = self._code(self._word(address + at), layout)
        except (struct.error, ValueError):
            return ""
        return str(_frame(known[0], known[1], known[2])) if known else ""

    def _c_string(self, address: int) -> str:
        return self._process.read(address, _NAME_MAX).partition(b"\0")[0].decode("utf-8", "replace")

    @property
    def threads(self) -> dict[int, int]:
        """The threads by the addresses of their states."""
        return {state: tid for tid, state in self._states.items()}

    @property
    def idents(self) -> dict[int, int]:
        """The threads by their values of `threading.get_ident()`."""
        layout = self._layout
        if layout is None:
            return {}
        return {self._word(state + layout.thread_id): tid for tid, state in self._states.items()}

    def _minor(self, names: Names, module: Module) -> int:
        """Return the minor version of Python 3 from a module's `Py_Version`, 0 before 3.11."""
        version = self._process.word(names.exported(module, "Py_Version").start)
        return version >> 16 & 0xFF if version >> 24 == _PYTHON_3 else 0

    def _word(self, address: int) -> int:
        return int(struct.unpack("<Q", self._process.read(address, 8))[0])

    def _threads(self, runtime: int, layout: Layout) -> Iterator[tuple[int, int]]:
        """Yield the id of each thread and the address of its state."""
        try:
            interpreter = self._word(runtime + layout.interpreters)
            for _ in range(_THREADS):
                if not interpreter:
                    return
                state = self._word(interpreter + layout.threads)
                for _ in range(_THREADS):
                    if not state:
                        break
                    yield self._tid(state, layout), state
                    state = self._word(state + layout.next_thread)
                interpreter = self._word(interpreter + layout.next_interpreter)
        except struct.error:
            return

    def _tid(self, state: int, layout: Layout) -> int:
        if layout.native_id:
            return self._word(state + layout.native_id)
        # Older interpreters have only the `pthread_t` of a thread.
        data = self._process.read(self._word(state + layout.thread_id) + self._process.tid_at, 4)
        return int.from_bytes(data, "little")

    def _frames(self, state: int, layout: Layout) -> Iterator[int]:
        """Yield the frames of a thread's Python functions, the innermost first."""
        return (frame for frame, is_c in self._all_frames(state, layout) if not is_c)

    def _all_frames(self, state: int, layout: Layout) -> Iterator[tuple[int, bool]]:
        """Yield the frames of a thread, the innermost first, and whether they stand for C calls."""
        frame = self._word(state + layout.frame)
        if layout.indirect:
            frame = self._word(frame + layout.current)
        for _ in range(_DEPTH):
            if not frame:
                return
            is_c = False
            if layout.owner:
                (owner,) = struct.unpack("B", self._process.read(frame + layout.owner, 1))
                is_c = owner >= _OWNED_BY_C
            yield frame, is_c
            frame = self._word(frame + layout.previous)

    def _runs(self, state: int, layout: Layout) -> list[PythonRun]:
        runs: list[PythonRun] = []
        new = True
        for frame, is_c in self._all_frames(state, layout):
            if is_c:
                if runs and not new:
                    runs[-1] = runs[-1]._replace(marker=frame)
                new = True
            else:
                if new:
                    runs.append(PythonRun([], 0))
                runs[-1].frames.append(self._function(frame, layout))
                new = not layout.inlines
            if layout.entry and self._process.read(frame + layout.entry, 1) != b"\0":
                new = True
        return runs

    def _function(self, frame: int, layout: Layout) -> PythonFrame:
        """Return the function of a frame with the current line."""
        code = self._code_of(frame, layout)
        if code not in self._codes:
            self._codes[code] = self._code(code, layout)
        known = self._codes[code]
        if known is None:
            raise ValueError("no code object")
        name, path, first, lines = known
        line = line_of(layout.minor, lines, first, self._at(frame, code, layout))
        return _frame(name, path, line)

    def _code_of(self, frame: int, layout: Layout) -> int:
        code = self._word(frame + layout.code)
        return code & ~_STACK_REF_MARKS if layout.stack_ref else code

    def _at(self, frame: int, code: int, layout: Layout) -> int:
        """Return the current instruction of a frame, as `line_of` counts."""
        if layout.instructions:
            return self._word(frame + layout.instruction) - (code + layout.instructions)
        return int(struct.unpack("<i", self._process.read(frame + layout.instruction, 4))[0])

    def _code(self, code: int, layout: Layout) -> tuple[str, str, int, bytes] | None:
        name = self._text(self._word(code + layout.name), layout)
        path = self._text(self._word(code + layout.filename), layout)
        (first,) = struct.unpack("<i", self._process.read(code + layout.first_line, 4))
        table = self._word(code + layout.lines)
        size = self._word(table + layout.size)
        if name is None or path is None or not 0 <= size <= _LINES_MAX or first < 0:
            return None
        return name, path, first, self._process.read(table + layout.bytes, size)

    def _text(self, address: int, layout: Layout) -> str | None:
        """Return the Python string at an address, None if there is no string."""
        size = self._word(address + layout.length)
        (state,) = struct.unpack("<I", self._process.read(address + layout.state, 4))
        # The bits of the state: the number of bytes of a character, compact, ASCII.
        state >>= layout.kind
        width, compact, ascii_only = state & 7, state >> 3 & 1, state >> 4 & 1
        if not compact or width not in {1, 2, 4} or not 0 < size <= _TEXT_MAX:
            return None
        begin = layout.ascii if ascii_only else layout.compact
        data = self._process.read(address + begin, size * width)
        if len(data) < size * width:
            return None
        encoding = {1: "latin-1", 2: "utf-16-le", 4: "utf-32-le"}[width]
        return data.decode(encoding, "replace")


def _frame(function: str, path: str, line: int) -> PythonFrame:
    return PythonFrame(function, path.rpartition("/")[2], line, path)
