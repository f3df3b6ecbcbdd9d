"""Where CPython's structures have their fields, by version (x86-64)."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from nptltrace.catalog._cpython import DEBUG_LIKE, DEBUG_WORDS, VERSIONS

__all__ = ["DEBUG_SIZE", "LAYOUTS", "Layout", "debug_layout"]

_COOKIE = b"xdebugpy"
_WORDS = struct.Struct("<8s80Q")
DEBUG_SIZE = _WORDS.size
_FREE_THREADED = 13


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Offsets of fields; 0 of a field that the version does not have, unless 0 is said to be valid.

    Attributes:
        minor: The version of Python 3.
        interpreters: In `_PyRuntime`: the first interpreter.
        next_interpreter: In an interpreter: the next; may be 0.
        threads: The first thread state.
        next_thread: In a thread state: the next.
        thread_id: The `pthread_t`.
        native_id: The thread as the kernel knows it.
        frame: The innermost frame, or what it stands in.
        indirect: It stands in another structure,
        current: there; may be 0.
        previous: In a frame: the caller's.
        code: The code object; may be 0.
        instruction: The instruction, as a number or as an address.
        owner: The kind of the frame's owner.
        entry: Whether C called the function.
        filename: In a code object: its file.
        name: Its name, qualified since 3.11.
        first_line: Its first line.
        lines: Its line table.
        instructions: The first instruction, where instructions are addresses.
        ascii: Where the characters of an ASCII string begin.
        compact: Where the characters of another string begin.
        size: In a bytes object: its size.
        bytes: Its bytes.
        length: In a string: its length.
        state: How its characters are stored.
        kind: The bit of `state` where the size of a character begins.
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
    """Return the layout that an interpreter says it has, None if it says no known layout.

    Args:
        minor: The version of Python 3.
        data: The beginning of `_PyRuntime` (`_Py_DebugOffsets`).
    """
    if minor not in DEBUG_WORDS or len(data) < _WORDS.size:
        return None
    cookie, *words = _WORDS.unpack_from(data)
    version, free_threaded = words[0], words[1]
    if cookie != _COOKIE or version >> 16 != 0x0300 | minor:
        return None
    # A free-threaded interpreter has the instructions of each thread elsewhere from 3.14 on.
    if free_threaded and minor != _FREE_THREADED:
        return None
    like = DEBUG_LIKE[minor]
    said = {name: words[at] for name, at in DEBUG_WORDS[minor].items()}
    said["compact"] = said["ascii"] + like["compact"] - like["ascii"]
    return Layout(minor=minor, **like | said)
