"""Objects of C libraries end in order, never during a call on them, and never at exit."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from nptltrace._binding.handle import Handle
from nptltrace.errors import NativeError
from tests.support import ROOT, clean_environment

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Compiler


class Thing(Handle):
    """Notes in a list when it ends."""

    def __init__(self, ended: list[int], number: int, *needs: object) -> None:
        self._own("make a thing", number, ended.append, *needs)


def test_an_object_ends_with_its_block() -> None:
    ended: list[int] = []
    with Thing(ended, 7) as thing:
        assert not ended
    assert ended == [7]
    thing.close()
    assert ended == [7], "it ended twice"
    with pytest.raises(ValueError, match="this Thing was closed"):
        _ = thing.handle


def test_an_object_outlives_the_objects_that_need_it() -> None:
    ended: list[int] = []
    reader = Thing(ended, 1)
    cursor = Thing(ended, 2, reader)
    reader.close()
    assert not ended, "the cursor still reads from it"
    cursor.close()
    assert ended == [2, 1]


def test_a_ring_of_references_ends_in_order() -> None:
    ended: list[int] = []

    def make() -> None:
        reader = Thing(ended, 1)
        cursor = Thing(ended, 2, reader)
        vars(reader)["cursor"], vars(cursor)["reader"] = cursor, reader

    make()
    gc.collect()
    assert ended == [2, 1]


def test_null_is_an_error_with_a_next_step() -> None:
    class Nothing(Handle):
        def __init__(self) -> None:
            self._own("open a reader", None, print)

    with pytest.raises(NativeError, match="cannot open a reader: Cannot allocate memory; give it"):
        Nothing()


def test_an_object_does_not_end_during_a_call(compile_c: Compiler) -> None:
    source = """
        #include <unistd.h>
        struct thing { int in, out, alive; };
        /* Waits to be let out, and returns whether the thing still lives. */
        int use(struct thing *thing)
        {
            __atomic_store_n(&thing->in, 1, __ATOMIC_SEQ_CST);
            while (!__atomic_load_n(&thing->out, __ATOMIC_SEQ_CST))
                usleep(1000);
            return thing->alive;
        }
    """

    class Inside(ctypes.Structure):
        _fields_ = (("entered", ctypes.c_int), ("leave", ctypes.c_int), ("alive", ctypes.c_int))

    class Used(Handle):
        def __init__(self, inside: Inside) -> None:
            def end(_: int) -> None:
                inside.alive = 0

            self._own("make a thing", ctypes.addressof(inside), end)

    library = ctypes.CDLL(str(compile_c(source, "-shared", "-fPIC")))
    library.use.argtypes = (ctypes.c_void_p,)
    inside = Inside(alive=1)
    used, answers = Used(inside), list[int]()
    thread = threading.Thread(target=lambda: answers.append(library.use(used.handle)))
    thread.start()
    while not inside.entered:
        pass
    used.close()
    assert inside.alive == 1
    inside.leave = 1
    thread.join()
    assert answers == [1], "it ended while the call was running"
    assert inside.alive == 0, "it did not end after the call"


def test_nothing_ends_at_exit(tmp_path: Path) -> None:
    script = tmp_path / "exits.py"
    script.write_text(
        "from nptltrace._binding.handle import Handle\n"
        "thing = Handle()\n"
        "thing._own('make a thing', 1, lambda _: print('ended'))\n"
        "print('exits')\n"
    )
    environment = clean_environment(PYTHONPATH=str(ROOT / "src"))
    done = subprocess.run(
        [sys.executable, script], env=environment, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("exits\n", "")
