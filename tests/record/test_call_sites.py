"""Call sites are in the program, whatever functions of the C++ library lie in between."""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support import Compiler, Ptt, Recorder

SOURCE = Path(__file__).with_name("sites.cpp")

# These events may have no call site in the program. Causes are a thread's first function, threads
# of std::async(), static objects that the C library destroys, and tail calls, which leave no frame.
MAYBE_FOREIGN = {
    "THREAD_BEGIN", "ONCE_BEGIN", "ONCE_END", "COND_DESTROY", "MUTEX_FREE", "RWLOCK_FREE",
}  # fmt: skip

# Wrappers, named in the way of one library; and a program that takes all its locks through them.
WRAPPERS = """
#include <pthread.h>
#include <stdlib.h>
void uv_mutex_lock(pthread_mutex_t *mutex) { if (pthread_mutex_lock(mutex)) abort(); }
void uv_mutex_unlock(pthread_mutex_t *mutex) { if (pthread_mutex_unlock(mutex)) abort(); }
void own_lock(pthread_mutex_t *mutex) { if (pthread_mutex_lock(mutex)) abort(); }
"""
CALLS_WRAPPERS = """
#include <pthread.h>
void uv_mutex_lock(pthread_mutex_t *);
void uv_mutex_unlock(pthread_mutex_t *);
void own_lock(pthread_mutex_t *);
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
#define BY(name, take) \\
	__attribute__((noinline)) void name(void) { take(&lock); uv_mutex_unlock(&lock); __asm__(""); }
BY(first, uv_mutex_lock)
BY(second, uv_mutex_lock)
BY(third, own_lock)
int main(void) { first(); second(); third(); return 0; }
"""

# Signals arrive while a thread is in wrappers, and their handler uses the wrappers too.
INTERRUPTED = """
#include <mutex>
#include <signal.h>
#include <semaphore.h>
#include <sys/time.h>
static std::mutex mutex;
static sem_t semaphore;
static volatile int ticks;
static void post(int) { sem_post(&semaphore); ticks = ticks + 1; }
static void tick(int) { post(0); }
int main()
{
	struct sigaction action = {};
	struct itimerval often = {{0, 200}, {0, 200}};
	sem_init(&semaphore, 0, 0);
	action.sa_handler = tick;
	action.sa_flags = SA_RESTART;
	sigaction(SIGALRM, &action, nullptr);
	setitimer(ITIMER_REAL, &often, nullptr);
	while (ticks < 200) {
		std::lock_guard<std::mutex> guard(mutex);
	}
	often = {};
	setitimer(ITIMER_REAL, &often, nullptr);
	return 0;
}
"""

# Two plug-ins are loaded, used and closed again and again, alternately at the same addresses.
PLUGIN = """
#include <mutex>
static std::mutex mutex;
extern "C" int NAME() { std::lock_guard<std::mutex> guard(mutex); FILLER return 0; }
extern "C" int run() { return NAME() + 0; }
"""
LOADS_PLUGINS = """
#include <dlfcn.h>
int main(int count, char **path)
{
	(void)count;
	for (int i = 0; i < 200; i++) {
		void *plugin = dlopen(path[1 + i % 2], RTLD_NOW);
		if (!plugin || ((int (*)(void))dlsym(plugin, "run"))() || dlclose(plugin))
			return 1;
	}
	return 0;
}
"""


def _compile_cxx(source: str | Path, directory: Path, *flags: str, name: str = "program") -> Path:
    if isinstance(source, str):
        path = directory / f"{name}.cpp"
        path.write_text(source)
        source = path
    program = directory / name
    subprocess.run(
        ["g++", "-std=c++17", "-g", "-pthread", str(source), "-o", str(program), *flags], check=True
    )
    return program


def _promised() -> set[tuple[str, str]]:
    """Return event and place of each call in the program's text."""
    return {
        (event, f"{SOURCE.name}:{number}")
        for number, line in enumerate(SOURCE.read_text().splitlines(), 1)
        if "//" in line and number > 1
        for event in line.split("//")[1].split()
    }


def _events(ptt: Ptt, trace: Path) -> list[dict[str, object]]:
    text = ptt("view", "--format", "jsonl", trace).stdout
    return [json.loads(line) for line in text.splitlines()]


def _place(event: dict[str, object]) -> str:
    """Return file and line of the call."""
    match = re.search(r"\(([^()]*:\d+)\)$", str(event.get("site_name")))
    return match[1] if match else str(event.get("site_name"))


@pytest.mark.parametrize("flag", ["-O0", "-Og", "-O1", "-O2", "-O2 -fno-omit-frame-pointer"])
def test_calls_through_the_cxx_library_have_sites_in_the_program(
    flag: str, tmp_path: Path, record: Recorder, ptt: Ptt
) -> None:
    events = _events(ptt, record(_compile_cxx(SOURCE, tmp_path, *flag.split())))
    seen = {(str(event["event"]), _place(event)) for event in events if int(str(event["site"]), 16)}
    # Code that the optimizer moves may have another line number.
    if flag == "-O0":
        assert _promised() <= seen
    foreign = {(event, place) for event, place in seen if SOURCE.name not in place}
    assert {event for event, _ in foreign} <= MAYBE_FOREIGN
    assert not any("gthr" in place or "mutex" in place for _, place in foreign)


@pytest.mark.parametrize("handler", ["shared", "text"])
def test_other_handlers_record_the_same_sites(
    handler: str, tmp_path: Path, native_stage: Path, ptt: Ptt
) -> None:
    program = _compile_cxx(SOURCE, tmp_path, "-O0", "-no-pie")
    if handler == "shared":
        trace = tmp_path / "trace"
        ptt("record", "--handler", "shared", "-o", trace, "--", program)
        places = {_place(event) for event in _events(ptt, trace) if event["event"] == "MUTEX_TAKEN"}
    else:
        reported = ptt("record", "--handler", "text", "--", program).stderr
        sites = set(re.findall(r"took mutex .* at program\+(0x[0-9a-f]+)", reported))
        named = subprocess.run(
            ["addr2line", "-s", "-e", program, *(hex(int(site, 16) - 1) for site in sites)],
            capture_output=True,
            encoding="utf-8",
            check=True,
        ).stdout
        places = set(named.split("\n")) - {""}
    wanted = {place for event, place in _promised() if event == "MUTEX_TAKEN"}
    # Condition variables retake the mutex at the place of the wait call.
    assert wanted <= places
    assert all(SOURCE.name in place for place in places)


def test_wrappers_of_a_stripped_library_are_no_call_sites(
    compile_c: Compiler, tmp_path: Path, record: Recorder, ptt: Ptt
) -> None:
    library = tmp_path / "libwrap.so"
    (tmp_path / "wrap.c").write_text(WRAPPERS)
    subprocess.run(
        ["gcc", "-O2", "-shared", "-fPIC", "-s", tmp_path / "wrap.c", "-o", library], check=True
    )
    program = compile_c(CALLS_WRAPPERS, str(library), f"-Wl,-rpath,{tmp_path}")
    taken = [
        str(event["site_name"]).split("+")[0]
        for event in _events(ptt, record(program))
        if event["event"] == "MUTEX_TAKEN"
    ]
    # The library's own lock function is the call site when the program calls it.
    assert taken == ["first", "second", "own_lock"]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the address is for x86-64 programs")
def test_wrappers_in_a_program_with_holes_are_no_call_sites(
    compile_c: Compiler, record: Recorder, ptt: Ptt
) -> None:
    """A program like Node.js: nothing lies between its first segment and its code."""
    flags = ("-no-pie", "-fno-inline", "-Wl,--section-start=.init=0x900000")
    events = _events(ptt, record(compile_c(WRAPPERS + CALLS_WRAPPERS, *flags)))
    taken = [str(event["site_name"]) for event in events if event["event"] == "MUTEX_TAKEN"]
    assert [site.partition("+")[0] for site in taken] == ["first", "second", "own_lock"]


# The next version replaces the library before the program calls it.
REPLACES = """
#include <pthread.h>
#include <stdio.h>
int own_lock(pthread_mutex_t *);
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
int main(int argc, char **argv)
{
	return argc != 3 || rename(argv[1], argv[2]) || own_lock(&lock) != 1;
}
"""


def test_wrappers_of_a_replaced_library_are_not_named_by_the_new_file(
    compile_c: Compiler, tmp_path: Path, record: Recorder, ptt: Ptt
) -> None:
    """Function names come from the mapped file, or the function has no name."""
    library, after = tmp_path / "libwrap.so", tmp_path / "next.so"
    for path, function in ((library, "own_lock"), (after, "uv_mutex_lock")):
        source = f"int pthread_mutex_lock(void *); int {function}(void *m)"
        (tmp_path / "wrap.c").write_text(source + "{ return pthread_mutex_lock(m) + 1; }")
        subprocess.run(
            ["gcc", "-O1", "-shared", "-fPIC", "-Wl,--build-id", tmp_path / "wrap.c", "-o", path],
            check=True,
        )
    program = compile_c(REPLACES, str(library), f"-Wl,-rpath,{tmp_path}")
    trace = record(program, after, library)
    (taken,) = (event for event in _events(ptt, trace) if event["event"] == "MUTEX_TAKEN")
    assert str(taken["site_name"]).startswith("libwrap.so")


# A library's slow path has no name after stripping; Rust's names are long.
SLOW_PATH = """
#include <pthread.h>
static __attribute__((noinline)) int slow(pthread_mutex_t *mutex)
{
	return pthread_mutex_lock(mutex) + 1;
}
int SDL_LockIt(pthread_mutex_t *mutex)
{
	return slow(mutex) - 1;
}
"""
CALLS_SLOW_PATH = """
#include <pthread.h>
int SDL_LockIt(pthread_mutex_t *mutex);
static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER, two = PTHREAD_MUTEX_INITIALIZER;
int rust(pthread_mutex_t *mutex)
	__asm__("_ZN3std3sys4sync5mutex5futex5Mutex14lock_contended17h0123456789abcdefE");
__attribute__((noinline)) int rust(pthread_mutex_t *mutex)
{
	return pthread_mutex_lock(mutex) + 1;
}
__attribute__((noinline)) int first(void)
{
	return SDL_LockIt(&one) + 1;
}
__attribute__((noinline)) int second(void)
{
	return rust(&two) + 1;
}
int main(void)
{
	return first() + second() - 3;
}
"""


@pytest.mark.parametrize("name", ["libSDL2-2.0.so.0", "libglib-2.0.so.0", "libSDL3.so.0"])
def test_whole_wrapper_libraries_are_no_call_sites(
    name: str, compile_c: Compiler, tmp_path: Path, record: Recorder, ptt: Ptt
) -> None:
    (tmp_path / "slow.c").write_text(SLOW_PATH)
    library = tmp_path / name
    subprocess.run(
        ["gcc", "-O1", "-shared", "-fPIC", "-s", tmp_path / "slow.c", f"-Wl,-soname,{name}",
         "-o", library], check=True,
    )  # fmt: skip
    program = compile_c(CALLS_SLOW_PATH, "-O1", str(library), f"-Wl,-rpath,{tmp_path}")
    taken = [
        str(event["site_name"]).split("+")[0]
        for event in _events(ptt, record(program))
        if event["event"] == "MUTEX_TAKEN"
    ]
    assert taken == ["first", "second"]


# As many calls as the parameter says, each from its own place.
MANY_SITES = """
#include <pthread.h>
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
void all(void);
#if defined(__aarch64__)
#define BEGIN " stp x29, x30, [sp, -16]!\\n"
#define CALL(name) " adrp x0, mutex\\n add x0, x0, :lo12:mutex\\n bl " name "\\n"
#define END " ldp x29, x30, [sp], 16\\n ret\\n"
#else
#define BEGIN " sub $8, %rsp\\n"
#define CALL(name) " lea mutex(%rip), %rdi\\n call " name "@plt\\n"
#define END " add $8, %rsp\\n ret\\n"
#endif
__asm__(".text\\n.globl all\\n.type all, %function\\nall:\\n" BEGIN ".rept " PAIRS "\\n"
	CALL("pthread_mutex_lock") CALL("pthread_mutex_unlock") ".endr\\n" END ".size all, . - all");
int main(void)
{
	all();
	return 0;
}
"""


def test_no_call_site_is_missed_in_a_burst(compile_c: Compiler, record: Recorder, ptt: Ptt) -> None:
    trace = record(compile_c(MANY_SITES, '-DPAIRS="15000"'))
    lines = ptt("view", "--format", "raw", "--event", "MUTEX", trace).stdout.splitlines()
    assert len({line.split()[6] for line in lines} - {"0x0"}) == 30_000
    assert ptt("stat", trace).stderr == ""


def test_more_call_sites_than_numbers_are_reported(
    compile_c: Compiler, record: Recorder, ptt: Ptt
) -> None:
    trace = record(compile_c(MANY_SITES, '-DPAIRS="40000"'))
    lines = ptt("view", "--format", "raw", "--event", "MUTEX", trace).stdout.splitlines()
    without = sum(line.split()[6] == "0x0" for line in lines)
    assert without > 80_000 - 65_536
    assert f"{without} events have no call site" in ptt("stat", trace).stderr


@pytest.mark.parametrize(("handler", "place"), [("ring", "<module> (says.py:2)"), ("shared", "")])
def test_events_of_a_script_have_its_lines(
    handler: str, place: str, tmp_path: Path, record: Recorder, ptt: Ptt
) -> None:
    """The site is never in the library that makes the call for the script."""
    script = tmp_path / "says.py"
    script.write_text("import nptltrace\nnptltrace.user_event('warm')\n")
    trace = record(sys.executable, script, options=("--handler", handler))
    (message,) = (event for event in _events(ptt, trace) if event["source"] == "user")
    assert message["site_name"] == place


def test_user_events_have_the_programs_site(
    compile_c: Compiler, record: Recorder, ptt: Ptt
) -> None:
    """The site is in the program, not in the inlined function of PTT's header."""
    program = compile_c(
        "#include <nptl_trace.h>\n"
        '__attribute__((noinline)) static void tells(void) { nptl_trace_say("so"); }\n'
        "int main(void) { tells(); return 0; }\n",
        "-g", "-O1",
    )  # fmt: skip
    (said,) = (event for event in _events(ptt, record(program)) if event["source"] == "user")
    assert re.fullmatch(r"tells\+0x\w+ \(\S+\.c:2\)", str(said["site_name"]))


def test_calls_in_signal_handlers_have_sites(tmp_path: Path, record: Recorder, ptt: Ptt) -> None:
    program = _compile_cxx(INTERRUPTED, tmp_path, "-O0")
    events = _events(ptt, record(program))
    places = Counter((event["event"], _place(event)) for event in events)
    assert {place for event, place in places if str(event).startswith("MUTEX")} == {
        "program.cpp:21",
        "program.cpp:22",
    }
    assert {place for event, place in places if str(event).startswith("SEM_POST")} == {
        "program.cpp:9"
    }
    posts = sum(n for (event, _), n in places.items() if str(event).startswith("SEM_POST"))
    assert posts >= 200


def test_plugins_at_the_same_addresses_keep_their_sites(
    compile_c: Compiler, tmp_path: Path, record: Recorder, ptt: Ptt
) -> None:
    plugins = [
        _compile_cxx(
            PLUGIN.replace("FILLER", filler).replace("NAME", name),
            tmp_path,
            "-O0",
            "-shared",
            "-fPIC",
            name=f"{name}.so",
        )
        for name, filler in (("one", ""), ("two", "volatile int filler[200]; filler[1] = 0;"))
    ]
    trace = record(
        compile_c(LOADS_PLUGINS, "-ldl"), *map(str, plugins), options=("--stacks", "all")
    )
    taken = [event for event in _events(ptt, trace) if event["event"] == "MUTEX_TAKEN"]
    assert len(taken) == 200
    text = ptt("view", "--stacks", "--event", "MUTEX_TAKEN", trace).stdout
    frames = Counter(re.findall(r"^ +(\w+)\+0x\w+ \(\w+\.so\.cpp:\d+\)$", text, re.MULTILINE))
    assert frames["run"] == 200


def test_code_without_tables_keeps_the_innermost_call(
    tmp_path: Path, record: Recorder, ptt: Ptt
) -> None:
    program = _compile_cxx(
        SOURCE, tmp_path, "-O0", "-fno-asynchronous-unwind-tables", "-fno-exceptions"
    )
    events = _events(ptt, record(program))
    assert sum(event["event"] == "MUTEX_TAKEN" for event in events) >= 150


# Waits only in functions that look like library functions; one of them is the thread's first.
ONLY_WRAPPERS = """
#include "in_turn.h"
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __attribute__((noinline)) void *uv_thread_work(void *unused)
{
	TAKE_IN_TURN(&lock);
	return unused;
}
int main(void)
{
	pthread_t one, two;
	pthread_create(&one, NULL, uv_thread_work, NULL);
	pthread_create(&two, NULL, uv_thread_work, NULL);
	return pthread_join(one, NULL) || pthread_join(two, NULL);
}
"""


def test_a_thread_only_in_wrappers_has_a_site_in_the_program(
    compile_c: Compiler, record: Recorder, ptt: Ptt
) -> None:
    """The tracer's own first function of a thread is never shown as the program's function."""
    trace = record(compile_c(ONLY_WRAPPERS))
    report = ptt("report", "--by", "site", "--format", "json", trace).stdout
    waits = [site["site"] for site in json.loads(report)["sites"] if site["waits"]]
    assert waits
    assert all(site.startswith("uv_thread_work") for site in waits)
    stacks = ptt("report", "--by", "stack", trace).stdout
    assert "uv_thread_work" in stacks
    assert "trampoline" not in stacks
