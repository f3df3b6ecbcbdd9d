"""Memory words that moved between glibc versions: words of conditions and of joins."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, cast

import pytest

from nptltrace.hang.c_library import CLibrary, c_library
from nptltrace.hang.calibration import EXPECTED, measured
from nptltrace.hang.conditions import LAYOUTS, Layout
from nptltrace.hang.routines import routine_kind
from nptltrace.hang.stack.names import Names, OneProcess
from nptltrace.hang.targets.process import Process
from nptltrace.hang.targets.target import Call, Thread
from nptltrace.hang.waits import Waits, wait_of
from nptltrace.trace.symbols.lookup import Symbols
from tests.hang.looking import asleep, running

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nptltrace.hang.targets.target import Target
    from nptltrace.hang.waits import Wait
    from tests.support import Compiler, Ptt

BASE, TID = 0x7F00_0000_0000, 4321
BEFORE, SINCE = LAYOUTS
# Two threads have waited before, three wait now. Up to glibc 2.40, the reference counts of both
# groups come before the sizes.
WAITS = struct.pack("<QQ", 5 << 1, 2 << 1)
CONDITIONS = {
    BEFORE: WAITS + struct.pack("<8I", 6, 0, 0, 0, 1 << 2, 3 << 3, 0, 0),
    SINCE: WAITS + struct.pack("<8I", 0, 0, 1 << 2, 3 << 3, 0, 0, 0, 0),
}


class Memory:
    """A process with only a piece of memory."""

    machine, tid_at = "x86_64", 720

    def __init__(self, data: bytes) -> None:
        self._data = bytes(256) + data + bytes(256)

    def read(self, address: int, size: int) -> bytes:
        """Return the bytes inside the piece, and nothing outside of it."""
        at = address - BASE + 256
        return self._data[at : at + size] if 0 <= at <= len(self._data) - size else b""


def waiting(data: bytes, word: int, routine: str, value: int, layout: Layout | None) -> Wait | None:
    """Return the wait of a thread that sleeps on a word of the memory."""
    thread = Thread(1, 1, "", "S", Call(202, (BASE + word, 0x189, value, 0, 0, 0)))
    process = cast("Target", Memory(data))
    library = CLibrary(condition=layout)
    return wait_of(process, thread, frozenset({TID}), Waits(routine, routine), library)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("is_known", [True, False])
def test_a_condition_is_found_by_its_words(layout: Layout, *, is_known: bool) -> None:
    known = layout if is_known else None
    for word in (layout.signals, layout.signals + 4, layout.waiters):
        wait = waiting(CONDITIONS[layout], word, "pthread_cond_wait", 0, known)
        assert wait is not None
        assert (wait.kind, wait.object) == ("condition", BASE)


def test_the_joined_thread_is_known_by_its_memory() -> None:
    thread = bytearray(2048)
    struct.pack_into("<QQQ", thread, 0, BASE, 0, BASE)
    struct.pack_into("<I", thread, 720, TID)
    for word, value in ((720, TID), (1576, 2)):
        wait = waiting(bytes(thread), word, "pthread_join", value, None)
        assert wait is not None
        assert (wait.kind, wait.owner) == ("join", TID)


# A library with other offsets than any glibc. It says so in its tables for debuggers, and in the
# code that counts the waiters of a condition.
LIBRARY = r"""
const char __nptl_version[] = "VERSION";
const unsigned _thread_db_pthread_tid[3] = {32, 1, 736};
int pthread_cond_wait(char *condition)
{
	return __atomic_fetch_add((int *)(condition + 20), 8, __ATOMIC_RELAXED);
}
"""
PROGRAM = r"""
#include <unistd.h>
int pthread_cond_wait(char *condition);
int main(int count, char **arguments)
{
	return count > 1 ? pthread_cond_wait(arguments[1]) : pause();
}
"""


def learned(pid: str, monkeypatch: pytest.MonkeyPatch, machine: str = "x86_64") -> CLibrary:
    """Return the facts about the other C library of a process."""
    process = Process(int(pid))
    process.machine = machine
    others = [m for m in process.modules if not m.path.endswith("libc.so.6")]
    monkeypatch.setattr(type(process), "modules", property(lambda _: others))
    return c_library(process, Names(Symbols(OneProcess(process))))


@pytest.fixture(params=["2.43", "2.99"])
def library(
    request: pytest.FixtureRequest, compile_c: Compiler, ptt: Ptt, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[str, CLibrary]]:
    """A version, and what is learned of a process with a C library of this version."""
    text = LIBRARY.replace("VERSION", request.param)
    file = compile_c(text, "-shared", "-fPIC", "-O1", name="libc-test.so")
    program = compile_c(PROGRAM, str(file), f"-Wl,-rpath,{file.parent}")
    with running(program) as pid:
        asleep(ptt, pid, 1)
        yield request.param, learned(pid, monkeypatch)


def test_offsets_come_from_the_library_itself(library: tuple[str, CLibrary]) -> None:
    version, known = library
    assert (known.version, known.condition, known.tid_at) == (version, Layout(20, 24), 736)
    # Nothing in this library tells the offsets in rwlocks.
    assert known.is_known == (version == "2.43")


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
@pytest.mark.parametrize(("export", "layout"), [("sched_getattr", SINCE), ("other", BEFORE)])
def test_without_readable_code_the_version_tells_the_layout(
    machine: str,
    export: str,
    layout: Layout,
    *,
    compile_c: Compiler,
    ptt: Ptt,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = compile_c(f"int {export}(void) {{ return 0; }}", "-shared", "-fPIC", name="libc-test.so")
    text = "#include <unistd.h>\nint NAME(void);\nint main(void) { return NAME() + pause(); }"
    program = compile_c(text.replace("NAME", export), str(file), f"-Wl,-rpath,{file.parent}")
    with running(program) as pid:
        asleep(ptt, pid, 1)
        known = learned(pid, monkeypatch, machine)
    assert known.condition == layout


@pytest.mark.parametrize("is_known", [True, False])
def test_owners_in_an_unknown_library_are_unknown(*, is_known: bool) -> None:
    lock = struct.pack("<IIIIIIi", 3, 0, 1, 0, 0, 0, TID)
    thread = Thread(1, 1, "", "S", Call(202, (BASE + 8, 0x189, 3, 0, 0, 0)))
    at = Waits("pthread_rwlock_rdlock", "pthread_rwlock_rdlock")
    library = CLibrary(is_known=is_known)
    wait = wait_of(cast("Target", Memory(lock)), thread, frozenset({TID}), at, library)
    assert wait is not None
    assert (wait.kind, wait.owner) == ("rwlock", TID if is_known else 0)


def test_calibration_finds_the_offsets_of_known_versions() -> None:
    assert measured() == EXPECTED


@pytest.mark.parametrize("name", ["__libc_malloc2", "_int_free_merge_chunk", "_mid_memalign"])
def test_functions_of_the_heap_of_new_versions_are_known(name: str) -> None:
    assert routine_kind(name) == "malloc lock"
