"""Whole call stacks: equal to another unwinder's, of both sides of a wait, cut if unknown."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

import pytest

import nptltrace
from tests.support import PROGRAMS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Compiler, Ptt, Recorder

x86_64 = pytest.mark.skipif(platform.machine() != "x86_64", reason="the code is for x86-64")


class _Stacks:
    """The stacks of a trace, with frames as offsets in one module.

    Args:
        trace: The trace.
        module: File name of the module.
    """

    def __init__(self, trace: Path, module: str) -> None:
        with nptltrace.open(trace) as traces:
            sites = traces.table("sites").to_pylist()
            stacks = traces.table("stacks").to_pylist()
            self.events = traces.table("events").to_pylist()
            self.waits = traces.table("waits").to_pylist()
            self.holds = traces.table("holds").to_pylist()
        offset = {row["site_id"]: row["offset"] for row in sites if row["module"] == module}
        self.functions = {row["site_id"]: row["function"] for row in sites}
        self.frames: dict[str, list[str]] = {row["stack_id"]: row["frames"] for row in stacks}
        self.truncated: dict[str, bool] = {row["stack_id"]: row["truncated"] for row in stacks}
        self.offsets = {
            stack: [offset[frame] for frame in frames if frame in offset]
            for stack, frames in self.frames.items()
        }

    def names(self, stack: str) -> list[str]:
        """Return the functions of a stack, the innermost first."""
        return [self.functions[frame] for frame in self.frames[stack]]


@pytest.mark.parametrize(
    "flags",
    [(), ("-fomit-frame-pointer", "-O2"), pytest.param(("-O3", "-mavx2"), marks=x86_64)],
)
def test_stacks_equal_those_of_another_unwinder(
    compile_c: Compiler, record: Recorder, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    program, out = compile_c(PROGRAMS / "deep_stacks.c", *flags), tmp_path / "out"
    stacks = _Stacks(record(program, "60", out, options=("--stacks", "all")), program.name)
    message: dict[int, list[list[int]]] = {}
    for line in out.read_text().splitlines():
        tid, *frames = line.split()
        message.setdefault(int(tid), []).append([int(frame, 16) for frame in frames])
    walked: dict[int, list[list[int]]] = {tid: [] for tid in message}
    for event in stacks.events:
        if event["event"] == "MUTEX_TAKEN" and event["tid"] in message:
            walked[event["tid"]].append(stacks.offsets[event["stack_id"]][1:])
    assert {tid: len(of) for tid, of in walked.items()} == {
        tid: len(of) for tid, of in message.items()
    }
    wrong = [
        (at, there)
        for tid in message
        for at, there in zip(message[tid], walked[tid], strict=True)
        if at != there
    ]
    assert not wrong, f"{len(wrong)} of {sum(map(len, message.values()))}: {wrong[0]}"


# Two ways to one lock; each thread holds the lock while the other thread asks for it.
TWO_WAYS = """
#include "in_turn.h"
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
#define CALLS(name, what) __attribute__((noinline)) void name(void) { what; __asm__ volatile(""); }
CALLS(wrapper, TAKE_IN_TURN(&lock))
CALLS(reads, wrapper())
CALLS(writes, wrapper())
static void *reader(void *arg)
{
	for (int i = 0; i < 20; i++)
		reads();
	return arg;
}
static void *writer(void *arg)
{
	for (int i = 0; i < 20; i++)
		writes();
	return arg;
}
static void both(void)
{
	pthread_t one, two;
	pthread_create(&one, NULL, reader, NULL);
	pthread_create(&two, NULL, writer, NULL);
	pthread_join(one, NULL);
	pthread_join(two, NULL);
}
int main(int count, char **arg)
{
	both();
	if (count > 1 && fork() == 0) {
		both();
		exit(0);
	}
	while (wait(NULL) > 0)
		;
	return 0;
}
"""


def _ways(stacks: _Stacks, column: str, rows: list[dict[str, object]]) -> set[str]:
    return {
        name
        for row in rows
        if row[column]
        for name in stacks.names(str(row[column]))
        if name in {"reads", "writes"}
    }


@pytest.mark.parametrize(
    "options", [(), ("-l", "1"), ("--stream-full-policy", "loop"), ("--stacks", "8")], ids=str
)
def test_waiter_and_holder_have_stacks(
    compile_c: Compiler, record: Recorder, options: tuple[str, ...]
) -> None:
    program = compile_c(TWO_WAYS)
    stacks = _Stacks(record(program, "and-a-child", options=options), program.name)
    for pid in {wait["pid"] for wait in stacks.waits}:
        waits = [w for w in stacks.waits if w["kind"] == "mutex" and w["pid"] == pid]
        assert len(waits) > 3
        assert _ways(stacks, "stack_id", waits) == {"reads", "writes"}
        assert all(not stacks.truncated[wait["stack_id"]] for wait in waits)
        if "1" in options:
            continue  # at this level no event says who holds a lock
        for wait in waits:
            there = [wait["stack_id"], wait["holder_stack_id"]]
            one, other = (_ways(stacks, "x", [{"x": stack}]) for stack in there)
            assert one
            assert not other & one, "the thread waited for itself"
        assert (
            sum(bool(_ways(stacks, "holder_stack_id", [wait])) for wait in waits) > len(waits) / 2
        )
        holds = [hold for hold in stacks.holds if hold["pid"] == pid]
        assert _ways(stacks, "stack_id", holds) == {"reads", "writes"}
    assert len({wait["pid"] for wait in stacks.waits}) == 2


# The holder takes a mutex again and again. Before one release, another thread waits for it.
HOT = """
#include "show.h"
#include <pthread.h>
#include <sched.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int comer, had, over;
#define CALLS(name, what) __attribute__((noinline)) void name(void) { what; __asm__ volatile(""); }
CALLS(take, pthread_mutex_lock(&lock))
CALLS(give, pthread_mutex_unlock(&lock))
CALLS(keeps, take(); give())
static void *wants(void *arg)
{
	__atomic_store_n(&comer, gettid(), __ATOMIC_RELEASE);
	while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE)) {
		take();
		__atomic_store_n(&had, 1, __ATOMIC_RELEASE);
		give();
		while (__atomic_load_n(&had, __ATOMIC_ACQUIRE) && !__atomic_load_n(&over, __ATOMIC_ACQUIRE))
			sched_yield(); /* sleeps for nothing but the mutex */
	}
	return arg;
}
int main(void)
{
	pthread_t thread;
	take();
	pthread_create(&thread, NULL, wants, NULL);
	while (!__atomic_load_n(&comer, __ATOMIC_ACQUIRE))
		nap();
	for (int i = 0; i < 20; i++) {
		await_asleep(comer);
		give();
		for (int j = 0; !__atomic_load_n(&had, __ATOMIC_ACQUIRE); j++)
			j < 50 ? keeps() : (void)sched_yield();
		for (int j = 0; j < 20; j++)
			keeps();
		take();
		__atomic_store_n(&had, 0, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&over, 1, __ATOMIC_RELEASE);
	give();
	pthread_join(thread, NULL);
	return 0;
}
"""


def test_the_holder_of_a_busy_mutex_has_a_stack(compile_c: Compiler, record: Recorder) -> None:
    program = compile_c(HOT, f"-I{PROGRAMS}")
    stacks = _Stacks(record(program), program.name)
    waits = [w for w in stacks.waits if w["class"] == "contended" and w["owner_tid"] == w["pid"]]
    assert len(waits) >= 20
    for names in (stacks.names(w["holder_stack_id"]) for w in waits):
        assert names[0] in {"take", "give"}
        assert names[1] in {"main", "keeps"}


# A mutex had one wait. Then two threads take it in turn, each for an instant; then one
# thread takes it again and again for longer.
ONCE_WAITED_FOR = """
#include <show.h>
#include <pthread.h>
#include <sched.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int comer, turn;
static long now_us(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000 + now.tv_nsec / 1000;
}
static void spin(long us) { for (long end = now_us() + us; now_us() < end;); }
static void *waits(void *arg)
{
	__atomic_store_n(&comer, gettid(), __ATOMIC_RELEASE);
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	return arg;
}
static void let_wait(void)
{
	pthread_t thread;
	comer = 0;
	pthread_mutex_lock(&lock);
	pthread_create(&thread, NULL, waits, NULL);
	while (!__atomic_load_n(&comer, __ATOMIC_ACQUIRE))
		nap();
	await_asleep(comer);
	pthread_mutex_unlock(&lock);
	pthread_join(thread, NULL);
}
#define KEEPS(name, us) __attribute__((noinline)) void name(void) \
	{ pthread_mutex_lock(&lock); if (us) spin(us); pthread_mutex_unlock(&lock); }
KEEPS(for_an_instant, 0)
KEEPS(for_longer, 300)
static void *takes_turns(void *second)
{
	for (int i = 0; i < 200; i++, spin(500)) {
		while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) != !!second)
			sched_yield();
		for_an_instant();
		__atomic_store_n(&turn, !second, __ATOMIC_RELEASE);
	}
	return NULL;
}
int main(void)
{
	pthread_t thread;
	let_wait();
	pthread_create(&thread, NULL, takes_turns, &thread);
	takes_turns(NULL);
	pthread_join(thread, NULL);
	let_wait();
	for (int i = 0; i < 40; i++) {
		for_longer();
		spin(2000);
	}
	return 0;
}
"""


def test_short_holds_seldom_have_a_stack(compile_c: Compiler, record: Recorder) -> None:
    program = compile_c(ONCE_WAITED_FOR, f"-I{PROGRAMS}")
    stacks = _Stacks(record(program), program.name)
    taken = [e["stack_id"] for e in stacks.events if e["event"] == "MUTEX_TAKEN" and e["stack_id"]]
    whole = [names[0] for names in map(stacks.names, taken) if len(names) > 1]
    assert 5 < whole.count("for_an_instant") < 40  # at most 64 are recorded after a wait
    assert whole.count("for_longer") in {39, 40}  # acquisitions show which threads are slow


# Checks, before each stack is taken, whether the thread holds one of the locks.
WITH_IT_IN_HAND = """
#include <show.h>
#include <dlfcn.h>
#include <stdint.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static int comer, looks, takes, in_hand;
uint32_t __nptl_trace_stack(void *site, const void *wanted)
{
	static uint32_t (*real)(void *, const void *);
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "__nptl_trace_stack");
	takes += looks;
	in_hand += looks && mutex.__data.__owner == gettid();
	in_hand += looks && rwlock.__data.__cur_writer == gettid();
	return real(site, wanted);
}
static const struct timespec *deadline(void)
{
	static struct timespec at;
	at = in_ms(CLOCK_REALTIME, 10000);
	return &at;
}
#define CALLS(name, what) __attribute__((noinline)) int name(void) \\
	{ int result = what; __asm__ volatile(""); return result; }
CALLS(lock, pthread_mutex_lock(&mutex))
CALLS(lock_in_time, pthread_mutex_timedlock(&mutex, deadline()))
CALLS(unlock, pthread_mutex_unlock(&mutex))
CALLS(lock_write, pthread_rwlock_wrlock(&rwlock))
CALLS(unlock_write, pthread_rwlock_unlock(&rwlock))
static int (*take)(void), (*give)(void);
static void *waits(void *arg)
{
	__atomic_store_n(&comer, gettid(), __ATOMIC_RELEASE);
	take();
	give();
	return arg;
}
static void takes_it_after_it_was_waited_for(int (*by)(void), int (*back)(void))
{
	pthread_t thread;
	take = by;
	give = back;
	comer = 0;
	take();
	pthread_create(&thread, NULL, waits, NULL);
	while (!__atomic_load_n(&comer, __ATOMIC_ACQUIRE))
		nap();
	await_asleep(comer);
	give();
	pthread_join(thread, NULL);
	looks = 1;
	for (int i = 0; i < 6; i++, usleep(20000)) {
		take();
		give();
	}
	looks = 0;
}
int main(void)
{
	takes_it_after_it_was_waited_for(lock, unlock);
	takes_it_after_it_was_waited_for(lock_in_time, unlock);
	takes_it_after_it_was_waited_for(lock_write, unlock_write);
	printf("%d of %d\\n", in_hand, takes);
	return 0;
}
"""


@pytest.mark.parametrize("level", ["2", "3"])
def test_the_stack_is_taken_before_the_lock(
    compile_c: Compiler, ptt: Ptt, trace_dir: Path, level: str
) -> None:
    program = compile_c(WITH_IT_IN_HAND, f"-I{PROGRAMS}", "-rdynamic")
    printed = ptt("record", "-q", "--level", level, "-o", trace_dir, "--", program).stdout
    in_hand, takes = map(int, printed.split(" of "))
    assert takes >= 12
    assert not in_hand
    stacks = _Stacks(trace_dir, program.name)
    taken = [e for e in stacks.events if e["event"].startswith(("MUTEX_TAKEN", "RWLOCK_TAKEN"))]
    names = [stacks.names(event["stack_id"]) for event in taken if event["stack_id"]]
    whole = [of[:2] for of in names if len(of) > 1]
    for by in ("lock", "lock_in_time", "lock_write"):
        assert whole.count([by, "takes_it_after_it_was_waited_for"]) >= 4


# Calls at the same stack address, by two different ways, and in the next thread.
SAME_PLACE = """
#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
#define CALLS(name, what) __attribute__((noinline)) void name(void) { what; __asm__ volatile(""); }
CALLS(wrapper, pthread_mutex_lock(&lock); pthread_mutex_unlock(&lock))
CALLS(between, wrapper())
CALLS(reads, between())
CALLS(writes, between())
#define RUN(name, odd, even) \\
	static void *name(void *arg) \\
	{ for (int i = 0; i < 200; i++) if (i % 3) odd(); else even(); return arg; }
RUN(first, reads, writes)
RUN(second, writes, reads)
int main(void)
{
	pthread_t thread;
	for (int i = 0; i < 6; i++) {
		pthread_create(&thread, NULL, i % 2 ? second : first, NULL);
		pthread_join(thread, NULL);
	}
	return 0;
}
"""


def test_stacks_at_the_same_address_are_told_apart(compile_c: Compiler, record: Recorder) -> None:
    program = compile_c(SAME_PLACE)
    stacks = _Stacks(record(program, options=("--stacks", "all")), program.name)
    taken: dict[int, list[str]] = {}
    for event in stacks.events:
        if event["event"] == "MUTEX_TAKEN":
            taken.setdefault(event["tid"], []).append(event["stack_id"])
    ways = (("first", "reads", "writes"), ("second", "writes", "reads"))
    for i, of in enumerate(taken.values()):
        run, odd, even = ways[i % 2]
        expected = [["wrapper", "between", odd if n % 3 else even, run] for n in range(200)]
        assert [stacks.names(stack)[:4] for stack in of] == expected
    assert len(taken) == 6


def test_stacks_are_as_deep_as_the_option_says(compile_c: Compiler, record: Recorder) -> None:
    program = compile_c(TWO_WAYS)
    for depth in (0, 8, 16):
        stacks = _Stacks(record(program, options=("--stacks", str(depth))), program.name)
        deepest = max(map(len, stacks.frames.values()))
        assert deepest <= (depth or 1)
        assert any(not cut for cut in stacks.truncated.values()) is bool(depth)


SAYS = """
#include <nptl_trace.h>
#include <string.h>
__attribute__((noinline)) static void say(const char *text)
{
	nptl_trace_say(text);
	__asm__ volatile("");
}
__attribute__((noinline)) static void at_work(void)
{
	say("work");
	__asm__ volatile("");
}
__attribute__((noinline)) static void at_rest(void)
{
	say("rest");
	__asm__ volatile("");
}
int main(void)
{
	at_work();
	at_rest();
	return 0;
}
"""


def test_user_events_have_stacks_only_with_user_stacks(
    compile_c: Compiler, record: Recorder
) -> None:
    program = compile_c(SAYS)

    def said(*options: str) -> list[list[str]]:
        stacks = _Stacks(record(program, options=options), program.name)
        events = [event for event in stacks.events if event["event"] == "USER"]
        return [
            stacks.names(event["stack_id"])[:3] if event["stack_id"] else [] for event in events
        ]

    assert [len(names) for names in said()] == [1, 1]  # the call site only
    ways = [["say", "at_work", "main"], ["say", "at_rest", "main"]]
    assert said("--user-stacks") == ways
    assert said("--user-stacks", "--stacks", "8") == ways


# Code without unwind rules in between; the outermost frame is reached before its caller is known.
NO_RULES = """
#include "in_turn.h"
#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
__attribute__((noinline)) void take(void)
{
	TAKE_IN_TURN(&lock);
	__asm__ volatile("");
}
void without_rules(void);
__asm__(".text\\n.globl without_rules\\nwithout_rules:\\n"
	"push %rbx\\npush %rbp\\npush %rbp\\nmov $7, %rbp\\nmov $9, %rbx\\n"
	"call take\\npop %rbp\\npop %rbp\\npop %rbx\\nret\\n");
static void *run(void *arg)
{
	for (int i = 0; i < 20; i++) {
		without_rules();
		__asm__ volatile("" : : : "rbx", "r12");
	}
	return arg;
}
int main(void)
{
	pthread_t thread[2];
	for (int i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, run, NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	return 0;
}
"""


@x86_64
def test_code_without_rules_ends_the_stack(compile_c: Compiler, record: Recorder) -> None:
    program = compile_c(NO_RULES, "-O2", "-fomit-frame-pointer")
    stacks = _Stacks(record(program), program.name)
    waits = [wait["stack_id"] for wait in stacks.waits if wait["kind"] == "mutex"]
    assert waits
    for stack in waits:
        assert stacks.names(stack)[0] == "take"
        assert len(stacks.frames[stack]) == 2
        assert stacks.truncated[stack]


# Frames relative to rbx and r12, which compilers do not choose, below a signal handler's frame.
BY_OTHER_REGISTERS = """
#include "in_turn.h"
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
#define COUNTS_FROM(name, reg) \\
	void name(void (*next)(int), int left); \\
	__asm__(".text\\n.globl " #name "\\n.type " #name ", @function\\n" \\
		#name ":\\n.cfi_startproc\\n" \\
		"push %" #reg "\\n.cfi_adjust_cfa_offset 8\\n.cfi_rel_offset " #reg ", 0\\n" \\
		"mov %rsp, %" #reg "\\n.cfi_def_cfa_register " #reg "\\n" \\
		"sub $512, %rsp\\nand $-64, %rsp\\nmov %rdi, %rax\\nmov %esi, %edi\\ncall *%rax\\n" \\
		"mov %" #reg ", %rsp\\n.cfi_def_cfa_register rsp\\n" \\
		"pop %" #reg "\\n.cfi_adjust_cfa_offset -8\\nret\\n.cfi_endproc\\n")
COUNTS_FROM(by_rbx, rbx);
COUNTS_FROM(by_r12, r12);
static void in_signal(int number)
{
	TAKE_IN_TURN(&lock);
	(void)number;
}
__attribute__((noinline)) void deep(int left)
{
	register long kept __asm__("rbx") = left;
	__asm__ volatile("" : "+r"(kept) : : "r12");
	if (!left)
		raise(SIGUSR1);
	else if (left % 3)
		by_rbx(deep, left - 1);
	else
		by_r12(deep, left - 1);
	__asm__ volatile("" : "+r"(kept));
}
static void *run(void *arg)
{
	static __thread char room[65536];
	stack_t own = {.ss_sp = room, .ss_size = sizeof(room)};
	sigaltstack(&own, NULL);
	for (int i = 0; i < 20; i++)
		deep(7);
	return arg;
}
int main(void)
{
	struct sigaction action = {.sa_handler = in_signal, .sa_flags = SA_ONSTACK};
	pthread_t thread[2];
	sigaction(SIGUSR1, &action, NULL);
	for (int i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, run, NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	return 0;
}
"""


@x86_64
def test_frames_that_count_from_any_register(compile_c: Compiler, record: Recorder) -> None:
    program = compile_c(BY_OTHER_REGISTERS, "-O2", "-fomit-frame-pointer")
    stacks = _Stacks(record(program, options=("--stacks", "64")), program.name)
    ways = ["by_rbx" if left % 3 else "by_r12" for left in range(1, 8)]
    called = ["deep", *(name for way in ways for name in (way, "deep"))]
    waits = [wait["stack_id"] for wait in stacks.waits if wait["kind"] == "mutex"]
    assert len(waits) > 3
    for stack in waits:
        names = stacks.names(stack)
        assert names[0] == "in_signal"
        assert names[names.index("deep") : names.index("run")] == called
        assert not stacks.truncated[stack]


# Stacks that the program allocates side by side, and frees while threads continue.
COROUTINES = """
#include "in_turn.h"
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread ucontext_t outside, inside;
__attribute__((noinline)) void in_coroutine(void)
{
	TAKE_IN_TURN(&lock);
	__asm__ volatile("");
}
static void *run(void *arg)
{
	for (int i = 0; i < 40; i++) {
		char *stack = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		getcontext(&inside);
		inside.uc_stack.ss_sp = stack;
		inside.uc_stack.ss_size = 16384;
		inside.uc_link = &outside;
		makecontext(&inside, in_coroutine, 0);
		swapcontext(&outside, &inside);
		munmap(stack, 16384);
	}
	return arg;
}
int main(void)
{
	pthread_t thread[3];
	for (int i = 0; i < 3; i++)
		pthread_create(&thread[i], NULL, run, NULL);
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	return 0;
}
"""


@pytest.mark.parametrize("depth", ["16", "all"])
def test_thread_stacks_may_be_freed_and_allocated_again(
    compile_c: Compiler, record: Recorder, depth: str
) -> None:
    program = compile_c(COROUTINES)
    stacks = _Stacks(record(program, options=("--stacks", depth)), program.name)
    waits = [wait["stack_id"] for wait in stacks.waits if wait["kind"] == "mutex"]
    assert len(waits) > 10
    assert all(stacks.names(stack)[0] == "in_coroutine" for stack in waits)


DEEP = """
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static __attribute__((noinline)) int down(int n)
{
	if (n)
		return down(n - 1) + 1;
	pthread_mutex_lock(&lock);
	return pthread_mutex_unlock(&lock);
}

int main(void)
{
	return down(3) + down(100) - 103;
}
"""


def test_unrecorded_callers_are_named_as_unrecorded(
    compile_c: Compiler, record: Recorder, ptt: Ptt, tmp_path: Path
) -> None:
    trace, out = record(compile_c(DEEP), options=("--stacks", "all")), tmp_path / "folded"
    ptt("export", "--format", "folded", "--show", "holds", "-o", out, trace)
    stacks = [line.rpartition(" ")[0].split(";") for line in out.read_text().splitlines()]
    cut, whole = sorted(stacks, key=lambda frames: frames[0] != "[truncated]")
    assert cut == ["[truncated]", *["down"] * (len(cut) - 1)]
    assert whole[-5:] == ["main", *["down"] * 4]
    assert "[truncated]" not in whole
    shown = ptt("report", "--by", "stack", "--show", "holds", trace).stdout.splitlines()
    assert sum(line.endswith("  [truncated]") for line in shown) == 1
