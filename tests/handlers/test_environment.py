"""PTHREAD_NPTL_TRACE in every form of the NPTL trace design, and in some other forms."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.handlers.helpers import run_traced
from tests.support import Compiler

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support import Ptt, Result

MISSING = "cannot open shared object file: No such file or directory"

# Prints its arguments, and counts the events that it receives.
HANDLER = """
#include <nptl_trace.h>
#include <nptl_trace_events.h>
#include <stdio.h>
static int taken, calls;
void nptl_trace_init(char **args)
{
    fprintf(stderr, "init");
    for (; *args; args++)
        fprintf(stderr, " [%s]", *args);
    fprintf(stderr, "\\n");
}
void nptl_trace_handler_getevent(struct nptl_trace_event event)
{
    if (event.source || event.domain != NPTL_DOMAIN_MUTEX)
        return;
    if (event.event == NPTL_EV_MUTEX_TAKEN)
        __atomic_fetch_add(&taken, 1, __ATOMIC_RELAXED);
    if (event.event == NPTL_EV_MUTEX_LOCK_IN)
        __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
}
void nptl_trace_fini(void)
{
    fprintf(stderr, "level %d, taken %d, calls %d\\n", __nptl_trace_detail_level, taken, calls);
}
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, native_stage: Path) -> Path:
    """Directory with libmy_handler.so, and a copy in the directory `below`."""
    directory = tmp_path_factory.mktemp("handlers")
    built = Compiler(directory, native_stage / "include")(
        HANDLER, "-shared", "-fPIC", name="libmy_handler.so"
    )
    (directory / "below").mkdir()
    shutil.copy(built, directory / "below")
    return directory


@pytest.fixture
def run(ptt: Ptt, program: Callable[[str], Path], place: Path) -> Callable[[str], Result]:
    def run_with(variable: str) -> Result:
        return run_traced(
            ptt, variable, program("lock_count"), "1", "3", cwd=place, LD_LIBRARY_PATH=str(place)
        )

    return run_with


@pytest.mark.parametrize(
    ("variable", "arguments", "level"),
    [
        # the examples of the design
        ("my_handler:arg1,arg2:1", " [arg1] [arg2]", 1),
        ("my_handler", "", 2),
        ("{place}/libmy_handler.so:arg1", " [arg1]", 2),
        ("my_handler:arg1:2:nptl_arg1", " [arg1]", 2),
        ("my_handler::1", "", 1),
        ("my_handler:::nptl_arg1", "", 2),
        ("my_handler:arg1", " [arg1]", 2),
        # a shared object by its name, and relative paths
        ("libmy_handler.so", "", 2),
        ("libmy_handler.so:a:3", " [a]", 3),
        ("./libmy_handler.so", "", 2),
        ("below/libmy_handler.so::3", "", 3),
        ("../{name}/below/libmy_handler.so", "", 2),
        # empty fields
        ("my_handler:", "", 2),
        ("my_handler::", "", 2),
        ("my_handler:::", "", 2),
        ("my_handler:a,,b", " [a] [] [b]", 2),
        ("my_handler:a,", " [a] []", 2),
        # levels have no upper bound; 0 is silence
        ("my_handler::99", "", 99),
        ("my_handler::0", "", 0),
        # levels of single domains, and unknown arguments of the tracer
        ("my_handler::1:level=mutex=3", "", 3),
        ("my_handler::2:colour=red;children=0", "", 2),
    ],
)
def test_every_form_is_understood(
    run: Callable[[str], Result], place: Path, variable: str, arguments: str, level: int
) -> None:
    done = run(variable.format(place=place, name=place.name))
    taken, calls = 3 * (level >= 2), 3 * (level >= 3)
    assert done.stdout == "3\n"
    assert done.stderr == f"init{arguments}\nlevel {level}, taken {taken}, calls {calls}\n"


@pytest.mark.parametrize("name", ["text", "libtext.so"])
def test_installed_handlers_are_found_by_name(run: Callable[[str], Result], name: str) -> None:
    assert run(name).stderr.count(" released mutex ") == 3


@pytest.mark.parametrize(
    ("variable", "line"),
    [
        (":", "PTHREAD_NPTL_TRACE names no handler: :"),
        (":arg1:2", "PTHREAD_NPTL_TRACE names no handler: :arg1:2"),
        (
            "my_handler::much",
            "the verbosity in PTHREAD_NPTL_TRACE is not a number: my_handler::much",
        ),
        ("my_handler::-1", "the verbosity in PTHREAD_NPTL_TRACE is not a number: my_handler::-1"),
        ("my_handler::2x", "the verbosity in PTHREAD_NPTL_TRACE is not a number: my_handler::2x"),
        (
            "nonesuch",
            f"cannot load the trace handler: libnonesuch.so: {MISSING}",
        ),
        (
            "./nonesuch.so:a:1",
            f"cannot load the trace handler: ./nonesuch.so: {MISSING}",
        ),
    ],
)
def test_errors_are_one_clear_line(run: Callable[[str], Result], variable: str, line: str) -> None:
    done = run(variable)
    assert done.returncode == 0
    assert done.stdout == "3\n"
    assert done.stderr == f"ptt: {line}; the program runs untraced\n"


@pytest.mark.parametrize(
    ("variable", "start"),
    [
        ("my_handler:" + "," * 100, "ptt: PTHREAD_NPTL_TRACE has too many handler arguments: "),
        ("my_handler:" + "a" * 5000, "ptt: PTHREAD_NPTL_TRACE is too long: "),
    ],
)
def test_an_overlong_variable_is_one_clear_line(
    run: Callable[[str], Result], variable: str, start: str
) -> None:
    done = run(variable)
    assert done.stdout == "3\n"
    assert done.stderr.startswith(start)
    assert done.stderr.endswith("; the program runs untraced\n")
    assert done.stderr.count("\n") == 1


def test_empty_variable_is_silence(run: Callable[[str], Result]) -> None:
    done = run("")
    assert (done.stdout, done.stderr) == ("3\n", "")


def test_a_library_without_a_handler_is_one_clear_line(
    ptt: Ptt, program: Callable[[str], Path], compile_c: Compiler
) -> None:
    other = compile_c("int nothing;\n", "-shared", "-fPIC", name="libother.so")
    done = run_traced(ptt, str(other), program("lock_count"), "1", "3")
    assert done.stdout == "3\n"
    assert done.stderr == (
        f"ptt: the trace handler has no nptl_trace_handler_getevent: {other}; "
        "the program runs untraced\n"
    )


def test_a_handler_needs_getevent_only(
    ptt: Ptt, program: Callable[[str], Path], compile_c: Compiler
) -> None:
    source = """
        #include <nptl_trace.h>
        #include <unistd.h>
        void nptl_trace_handler_getevent(struct nptl_trace_event event)
        {
            if (event.domain == 2 && write(2, "m", 1) < 0)
                _exit(1);
        }
        """
    least = compile_c(source, "-shared", "-fPIC", name="libleast.so")
    done = run_traced(ptt, str(least), program("lock_count"), "1", "3")
    assert (done.stdout, done.stderr) == ("3\n", "m" * 6)


def test_locks_of_a_handler_are_not_traced(
    ptt: Ptt, program: Callable[[str], Path], compile_c: Compiler
) -> None:
    handler = compile_c(
        """
        #include <nptl_trace.h>
        #include <pthread.h>
        #include <stdio.h>
        static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
        static int seen;
        void nptl_trace_handler_getevent(struct nptl_trace_event event)
        {
            pthread_mutex_lock(&lock);
            seen += event.domain == 2;
            pthread_mutex_unlock(&lock);
        }
        void nptl_trace_fini(void) { fprintf(stderr, "%d\\n", seen); }
        """,
        "-shared", "-fPIC", name="liblocks.so",
    )  # fmt: skip
    done = run_traced(ptt, f"{handler}::2:level=mutex=2", program("lock_count"), "1", "30")
    assert (done.stdout, done.stderr) == ("30\n", "60\n")


def test_a_handler_may_switch_tracing_off(
    ptt: Ptt, program: Callable[[str], Path], compile_c: Compiler
) -> None:
    handler = compile_c(
        """
        #include <nptl_trace.h>
        #include <stdio.h>
        void nptl_trace_init(char **args) { __nptl_trace_enabled = 0; }
        void nptl_trace_handler_getevent(struct nptl_trace_event event) { puts("called"); }
        void nptl_trace_fini(void) { puts("called"); }
        """,
        "-shared", "-fPIC", name="libgives_up.so",
    )  # fmt: skip
    assert run_traced(ptt, str(handler), program("lock_count"), "1", "3").stdout == "3\n"
