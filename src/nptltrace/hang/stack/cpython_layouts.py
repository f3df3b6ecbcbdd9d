"""The offsets of fields in the structures of CPython, by version (x86-64)."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from nptltrace.catalog._cpython import DEBUG_LIKE, DEBUG_WORDS, VERSIONS

__all__ = ["DEBUG_SIZE", "LAYOUTS", "Layout", "debug_free_threaded", "debug_layout"]

_COOKIE = b"xdebugpy"
_WORDS = struct.Struct("<8s96Q")
DEBUG_SIZE = _WORDS.size
_FREE_THREADED = 13


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Offsets of fields. The offset is 0 if the version has no such field, except where noted.

    Attributes:
        minor: The minor version of Python 3.
        interpreters: In `_PyRuntime`: the first interpreter.
        next_interpreter: In an interpreter: the next interpreter; may be 0.
        threads: The first thread state.
        next_thread: In a thread state: the next thread state.
        thread_id: The `pthread_t`.
        native_id: The id of the thread in the kernel.
        frame: The innermost frame, or the structure that refers to this frame.
        indirect: `frame` is such a structure,
        current: with the frame at this offset; may be 0.
        previous: In a frame: the frame of the caller.
        code: The code object; may be 0.
        instruction: The instruction, as a number or as an address.
        owner: The kind of the frame's owner.
        entry: Whether C called the function.
        filename: In a code object: the file.
        name: The name, qualified since 3.11.
        first_line: The first line.
        lines: The line table.
        instructions: The first instruction, if instructions are addresses.
        ascii: In an ASCII string: the first character.
        compact: In another string: the first character.
        size: In a bytes object: the size.
        bytes: The first byte.
        length: In a string: the length.
        state: The storage of the characters.
        kind: The lowest bit of the size of a character in `state`.
        stack_ref: `code` has marks in its lowest bits.
    """

    minor: int
    interpreters: int
    next_interpreter: int = 0
    threads: int
    next_thread: int
    thread_id: int
    native_id: int = 0
    frame: int
    indirect: int = 0
    current: int = 0
    previous: int
    code: int
    instruction: int
    owner: int = 0
    entry: int = 0
    filename: int
    name: int
    first_line: int
    lines: int
    instructions: int = 0
    ascii: int
    compact: int
    size: int
    bytes: int
    length: int
    state: int
    kind: int
    stack_ref: int = 0

    @property
    def inlines(self) -> bool:
        """Whether one call of the interpreter runs several Python functions."""
        return bool(self.instructions)


LAYOUTS = {minor: Layout(minor=minor, **fields) for minor, fields in VERSIONS.items()}


def debug_layout(minor: int, data: bytes) -> Layout | None:
    """Return the layout from an interpreter's table for debuggers, None if it has no known table.

    Args:
        minor: The minor version of Python 3.
        data: The begin of `_PyRuntime` (`_Py_DebugOffsets`).
    """
    if minor not in DEBUG_WORDS or len(data) < _WORDS.size:
        return None
    cookie, *words = _WORDS.unpack_from(data)
    version, free_threaded = words[0], words[1]
    if cookie != _COOKIE or version >> 16 != 0x0300 | minor:
        return None
    # From 3.14 on, a free-threaded interpreter has a copy of the instructions for each thread.
    if free_threaded and minor != _FREE_THREADED:
        return None
    like = DEBUG_LIKE[minor]
    offsets = {name: words[at] for name, at in DEBUG_WORDS[minor].items()}
    offsets["compact"] = offsets["ascii"] + like["compact"] - like["ascii"]
    return Layout(minor=minor, **like | offsets)


def debug_free_threaded(data: bytes) -> bool:
    """Return whether an interpreter's table for debuggers says that it runs without a GIL.

    Args:
        data: The begin of `_PyRuntime` (`_Py_DebugOffsets`).
    """
    return len(data) == _WORDS.size and data.startswith(_COOKIE) and bool(_WORDS.unpack(data)[2])
