"""The signal handlers of a process that may wake a thread, and CPython's functions for signals."""

from __future__ import annotations

import re
import signal
import struct
from typing import TYPE_CHECKING

from nptltrace._files.elf import Elf
from nptltrace.hang.stack.cpython import Pythons

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from nptltrace.hang.stack.names import Names
    from nptltrace.hang.targets.target import Target
    from nptltrace.trace.code.modules import Module

__all__ = ["BY_ITSELF", "handlers"]

# Signals that the kernel sends by itself: timers, children, sockets, messages.
BY_ITSELF = frozenset(
    {
        signal.SIGALRM, signal.SIGVTALRM, signal.SIGPROF, signal.SIGCHLD, signal.SIGIO,
        signal.SIGURG, *range(signal.SIGRTMIN, signal.SIGRTMAX + 1),
    }
)  # fmt: skip
# Functions that set signal handlers.
_HANDLED = frozenset(
    {
        "sigaction", "__sigaction", "signal", "bsd_signal", "sysv_signal", "__sysv_signal",
        "sigset",
    }
)  # fmt: skip
# The library with a handler of SIGWINCH for the line that is typed. Python's module names it.
_READLINE = re.compile(r"(readline\.|libreadline\.|libedit\.)")
# CPython's table of handlers has a flag and an object for each signal. Signal 0 has no object. The
# two signals of the C library have the same object. After them come the real-time signals, and
# most of these have the object of the default.
_SIGNALS, _RESERVED = 65, (32, 33)
_TABLE = struct.Struct(f"<{2 * _SIGNALS}Q")
_RUN = re.compile(rb"\0{8}(?!\0{8})(.{8})(?:\0{8}\1){15}", re.DOTALL)
_ENTRY, _WORD = 16, 8
_DATA_MAX = 1 << 24
_HEADERS = 4096
# The entry of SIGABRT in the table of CPython's faulthandler: the signal, 1 if the handler is set,
# and the address of a text. The handler prints the stacks and ends the process.
_ABORTS, _ABORTED = re.compile(rb"\x06\0{3}\x01\0{3}(.{8})", re.DOTALL), b"Aborted\0"
# The default handler of SIGINT raises KeyboardInterrupt, asyncio's handler ends the main task, and
# the handlers of PTT's plugin for pytest fail a test.
_INTERRUPTS = re.compile(
    r"default_int_handler|(\w+\.)?_on_sigint \(runners\.py:\d+\)"
    r"|(Guarded|_Watch)\.fail \((guarded|recorded)\.py:\d+\)"
)


def handlers(process: Target, names: Names) -> dict[int, str] | None:
    """Return the handled signals that may wake a thread, each with the handler's name or "".

    CPython's C handler only notes a signal for the main thread. A signal of CPython counts if its
    Python function does not just interrupt the program.

    Args:
        process: The process.
        names: The names in the process.

    Returns:
        None if the process may have handlers, but their signals are not known.
    """
    caught = process.caught
    if caught is None:
        return None if names.imports(process.modules, _HANDLED) is not False else {}
    if not caught:
        return {}
    pythons = Pythons(process, names)
    data = _variables(process, pythons)
    called = _called_by_python(data, pythons)
    handled = {number: called.get(number, "") for number in caught}
    if handled.get(signal.SIGABRT) == "" and _has_faulthandler(process, data):
        handled.pop(signal.SIGABRT, None)
    if not handled.get(signal.SIGWINCH) and _has_readline(process):
        handled.pop(signal.SIGWINCH, None)
    return {number: name for number, name in handled.items() if not _INTERRUPTS.fullmatch(name)}


def _has_readline(process: Target) -> bool:
    return any(_READLINE.match(module.path.rpartition("/")[2]) for module in process.modules)


def _has_faulthandler(process: Target, data: bytes) -> bool:
    """Return whether CPython's faulthandler handles SIGABRT."""
    return any(
        process.read(int.from_bytes(match[1], "little"), len(_ABORTED)) == _ABORTED
        for match in _ABORTS.finditer(data)
    )


def _variables(process: Target, pythons: Pythons) -> bytes:
    """Return the memory of CPython's variables; empty if the process is no Python."""
    modules = (m for m in process.modules if m.path.rpartition("/")[2] == pythons.module)
    module = next(modules, None) if pythons.module else None
    return _data(process, module) if module is not None else b""


def _called_by_python(data: bytes, pythons: Pythons) -> Mapping[int, str]:
    """Return the names of the functions that CPython calls for signals."""
    words = _table(data)
    if not words:
        return {}
    objects = words[1::2]
    defaults = {0, objects[_RESERVED[0]], max(set(objects), key=objects.count)}
    return {
        number: pythons.function_name(address)
        for number, address in enumerate(objects)
        if address not in defaults
    }


def _data(process: Target, module: Module) -> bytes:
    """Return the memory of a module's variables."""
    head = process.read(module.start, _HEADERS)
    try:
        segments = Elf(lambda at, size: head[at : at + size]).segments
    except ValueError:
        return b""
    last = max(segments, key=lambda s: s.vaddr, default=None)
    if last is None or last.memory_size > _DATA_MAX:
        return b""
    begin = (module.bias or 0) + last.vaddr
    return process.read(-(-begin // _WORD) * _WORD, last.memory_size)


def _table(data: bytes) -> tuple[int, ...]:
    """Return CPython's table of handlers in a module's variables; empty if it is not found."""
    for match in _RUN.finditer(data):
        run = -(-match.start() // _WORD) * _WORD
        # Handlers of the program may come before the run of defaults.
        begins: Iterable[int] = range(run - _ENTRY * (_SIGNALS - 1), run, _WORD)
        for begin in begins:
            if begin >= 0 and begin + _TABLE.size <= len(data):
                words = _TABLE.unpack_from(data, begin)
                if _is_table(words):
                    return words
    return ()


def _is_table(words: tuple[int, ...]) -> bool:
    flags, objects = words[::2], words[1::2]
    first, second = (objects[number] for number in _RESERVED)
    return (
        not any(flag & ~1 for flag in flags)
        and not objects[0]
        and all(objects[1:])
        and first == second != objects[_RESERVED[-1] + 1]
    )
