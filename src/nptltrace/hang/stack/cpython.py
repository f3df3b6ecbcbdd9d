"""The Python functions that the threads of a CPython process are in, read from its memory."""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING, NamedTuple

from nptltrace._dataclasses import dataclass
from nptltrace.hang.stack.cpython_layouts import DEBUG_SIZE, LAYOUTS, debug_layout
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
# Where the C library of x86-64 keeps the id of a thread, from its `pthread_t` on.
_TID_AT = 720
# The owner of a frame that stands for a call by C, or more.
_OWNED_BY_C = 3
_STACK_REF_MARKS = 3
# In an object its type, and what follows; in a type its name; in a function its code since 3.10.
_TYPE, _FIRST_FIELD, _TYPE_NAME, _CODE, _CODE_MOVED = 8, 16, 24, 48, 10
_NAME_MAX = 128
# Where a string has its length, if objects begin with a count and a type alone.
_PLAIN_LENGTH = 16
# The function that a thread of Python begins with.
_THREADING, _BEGINS = "/threading.py", "_bootstrap"


@dataclass(frozen=True, slots=True)
class PythonFrame:
    """A Python function that a thread is in.

    Attributes:
        function: Its name, qualified where the interpreter knows it so.
        file: The source file, without directories.
        line: Its line; 0 where that is not known.
        path: The source file as the interpreter knows it.
        module: Nothing: it is in no module of the process.
    """

    function: str
    file: str
    line: int
    path: str
    module: str = ""

    def __str__(self) -> str:
        """Return it as `work (pool.py:88)`."""
        return f"{self.function} ({self.file}:{self.line})"


class PythonRun(NamedTuple):
    """The functions of Python that one call of the interpreter runs.

    Attributes:
        frames: The functions, the innermost first.
        marker: A frame on the stack of the call, from 3.12 on; 0 if there is none.
    """

    frames: list[PythonFrame]
    marker: int


class InsideFrame(NamedTuple):
    """A frame of a Python function in memory.

    Attributes:
        function: The function.
        address: The frame.
        code: The code object.
        at: Which instruction it is at, as `line_of` counts.
        minor: The version of Python 3.
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
        names: Names for what lies in it.

    Attributes:
        evaluates: Where the function of the interpreter lies that runs Python functions.
        module: File name of the interpreter's module.
        alone: Whether that module has nothing but the interpreter, as far as its name says.
    """

    def __init__(self, process: Target, names: Names) -> None:
        self._process = process
        self.evaluates, self.module, self.alone = range(0), "", False
        self._layout: Layout | None = None
        self._codes: dict[int, tuple[str, str, int, bytes] | None] = {}
        self._states: dict[int, int] = {}
        for module in process.modules:
            name = module.path.rpartition("/")[2]
            match = _NAME.fullmatch(name)
            # A program of another name may have the interpreter in itself.
            looked_at = match is not None or ".so" not in name
            runtime = names.exported(module, "_PyRuntime").start if looked_at else 0
            minor = int(match[1]) if match else self._said_minor(names, module) if runtime else 0
            if runtime and minor:
                self.evaluates = names.exported(module, "_PyEval_EvalFrameDefault")
                self.module, self.alone = name, match is not None or name in _PROGRAMS
                debug = debug_layout(minor, process.read(runtime, DEBUG_SIZE))
                self._layout = debug or LAYOUTS.get(minor)
                if self._layout is not None:
                    self._states = dict(self._threads(runtime, self._layout))
                break

    def of(self, inner_tid: int) -> list[PythonRun]:
        """Return the functions of a thread, the innermost first, by calls of the interpreter.

        Nothing is returned of a stack that cannot be read as a whole.
        """
        state = self._states.get(inner_tid)
        if state is None or self._layout is None:
            return []
        try:
            return self._runs(state, self._layout)
        except (struct.error, ValueError):
            return []

    def inside(self, inner_tid: int) -> list[InsideFrame]:
        """Return the frames of a thread, the innermost first, with where their contents lie.

        Nothing is returned where the objects of the interpreter cannot be read.
        """
        state, layout = self._states.get(inner_tid), self._layout
        if state is None or layout is None or layout.minor not in LOCALS:
            return []
        # Objects of free-threaded builds begin otherwise.
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
        """Return a string of Python, nothing of another object."""
        return (self._text(address, self._layout) or "") if self._layout is not None else ""

    def kind_of(self, address: int) -> str:
        """Return the name of the class of an object.

        Raises:
            struct.error: The memory cannot be read.
        """
        return self._c_string(self._word(self._word(address + _TYPE) + _TYPE_NAME))

    def thread_name(self, inner_tid: int) -> str:
        """Return the name of a `threading.Thread`, nothing of a thread of another kind."""
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
        # The function that a thread begins with is a method of the object.
        thread = self._word(outermost + LOCALS[layout.minor])
        attributes = PythonObjects(layout.minor, self._process.read).attributes(thread)
        named = next(value for key, value in attributes if self._text(key, layout) == "_name")
        return self._text(named, layout) or ""

    def function_name(self, address: int) -> str:
        """Return the name of a Python function, or of one in C, by the address of its object.

        Of another object the name of its class is returned.
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
        """The threads by where their states are."""
        return {state: tid for tid, state in self._states.items()}

    @property
    def idents(self) -> dict[int, int]:
        """The threads by what `threading.get_ident()` returns in them."""
        layout = self._layout
        if layout is None:
            return {}
        return {self._word(state + layout.thread_id): tid for tid, state in self._states.items()}

    def _said_minor(self, names: Names, module: Module) -> int:
        """Return which version of Python 3 a module says it is, 0 if it does not: before 3.11."""
        said = self._process.read(names.exported(module, "Py_Version").start, 8)
        version = int.from_bytes(said, "little")
        return version >> 16 & 0xFF if version >> 24 == _PYTHON_3 else 0

    def _word(self, address: int) -> int:
        return int(struct.unpack("<Q", self._process.read(address, 8))[0])

    def _threads(self, runtime: int, layout: Layout) -> Iterator[tuple[int, int]]:
        """Yield each thread's id and where its state is."""
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
        # Older interpreters know a thread as the C library does.
        data = self._process.read(self._word(state + layout.thread_id) + _TID_AT, 4)
        return int.from_bytes(data, "little")

    def _frames(self, state: int, layout: Layout) -> Iterator[int]:
        """Yield the frames of functions of a thread, the innermost first."""
        frame = self._word(state + layout.frame)
        if layout.indirect:
            frame = self._word(frame + layout.current)
        for _ in range(_DEPTH):
            if not frame:
                return
            if not self._is_of_c(frame, layout):
                yield frame
            frame = self._word(frame + layout.previous)

    def _is_of_c(self, frame: int, layout: Layout) -> bool:
        if not layout.owner:
            return False
        (owner,) = struct.unpack("B", self._process.read(frame + layout.owner, 1))
        return bool(owner >= _OWNED_BY_C)

    def _runs(self, state: int, layout: Layout) -> list[PythonRun]:
        frame = self._word(state + layout.frame)
        if layout.indirect:
            frame = self._word(frame + layout.current)
        runs: list[PythonRun] = []
        new = True
        for _ in range(_DEPTH):
            if not frame:
                break
            if self._is_of_c(frame, layout):
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
            frame = self._word(frame + layout.previous)
        return runs

    def _function(self, frame: int, layout: Layout) -> PythonFrame:
        """Return the function of a frame, at the instruction that it is at."""
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
        """Return which instruction a frame is at, as `line_of` counts."""
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
        """Return a Python string, None if none can be read there."""
        size = self._word(address + layout.length)
        (state,) = struct.unpack("<I", self._process.read(address + layout.state, 4))
        # Bits of the state: how many bytes a character has, compact, ASCII.
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
