"""Small programs with a bug that needs bad luck, and look-alikes that cannot go wrong.

A program is a list of threads, and a thread is a line of words:

* `a` to `g` lock a mutex; `-a` unlocks it. `a?` only tries, `a~` has a time limit; then `-a?`
  unlocks.
* `r<` and `r>` lock the rwlock `r` or `q` or `p` for reading or writing; `-r` unlocks it. In C++,
  `-r<` unlocks a reader.
* `s`, `t`, `u` take a semaphore of value 1, and `z` a semaphore of value 0; `-s` posts it.
* `k@a` waits with mutex `a` until somebody has set the flag of condition `k`; `k@@a` waits without
  the flag; `k#a` looks at the flag without the mutex, and then waits. `k!` sets the flag and
  signals; `k*` sets it and broadcasts.
* `a&b` locks both mutexes, in a function that all threads share.
* `.30` sleeps for 30 ms. `{20` repeats the words up to `}` 20 times.
* `j0` joins thread 0, and `c0` creates it; by default the first thread does so for all others.
* `B` is a barrier of two threads. `%1!` sets an atomic flag, `%1?` polls it. `|!` writes to a pipe,
  and `|?` reads from it.

A line that begins with `main:` is for the first thread of the program.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from string import Template

__all__ = ["LATENT", "SAFE", "Latent"]


@dataclass(frozen=True)
class Latent:
    """A program.

    Attributes:
        name: Its name, unique.
        threads: The lines.
        way: How it is built: `c`, `wrapped` (one function locks all mutexes), `c11`, `c++`,
            `processes` or `python`; or a type of mutexes in C.
        kind: The kind of the warnings to confirm; empty for the default.
    """

    name: str
    threads: tuple[str, ...]
    way: str = "c"
    kind: str = ""

    @property
    def suffix(self) -> str:
        """The suffix of the source file."""
        return {"c++": ".cc", "python": ".py"}.get(self.way, ".c")

    def source(self) -> str:
        """Return the text of the program."""
        return (_Python if self.way == "python" else _C)(self).text()


def _latent(names: str, *threads: str, kind: str = "") -> list[Latent]:
    """Return a program for each way; `names` is a name, a colon and the ways."""
    name, _, ways = names.partition(":")
    return [Latent(f"{name} {way}", threads, way, kind) for way in ways.split() or ["c"]]


_LOST = "lost-wakeup"

LATENT: list[Latent] = [
    *_latent("two: c wrapped c11 c++ python", "a b -b -a", ".30 b a -a -b"),
    *_latent("two: recursive robust inherit", "a b -b -a", ".30 b a -a -b"),
    *_latent("three: c wrapped c11 c++ python", "a b -b -a", ".30 b c -c -b", ".60 c a -a -c"),
    *_latent("four", "a b -b -a", ".30 b c -c -b", ".60 c d -d -c", ".90 d a -a -d"),
    *_latent("same code of two", "a&b", ".30 b&a"),
    *_latent("same code of five", "a&b", ".20 b&c", ".40 c&d", ".60 d&e", ".80 e&a"),
    *_latent("gate too short: c c++", "g a -g b -b -a", ".30 g b -g a -a -b"),
    *_latent("held by a try", "a? b -b -a?", ".30 b a -a -b"),
    *_latent("long hold", "a .5 b -b -a", ".40 b .5 a -a -b"),
    *_latent("lock between", "a c -c b -b -a", ".30 b a -a -b"),
    *_latent("loops", "{50 a b -b -a }", ".60 {50 b a -a -b }"),
    *_latent("taken again: recursive", "a a b -b -a -a", ".30 b a -a -b"),
    *_latent("writers: c c++", "r> q> -q -r", ".30 q> r> -r -q"),
    *_latent("writers in three", "r> q> -q -r", ".30 q> p> -p -q", ".60 p> r> -r -p"),
    *_latent("reader and mutex: c c++", "a r< -r< -a", ".30 r> a -a -r"),
    *_latent("reader with the lock", "r< a -a -r", ".30 a r> -r -a"),
    *_latent("reader reads again: writers-first", "r< r< -r -r", ".30 r> -r"),
    *_latent("processes: processes", "a b -b -a", ".30 b a -a -b"),
    *_latent("three processes: processes", "a b -b -a", ".30 b c -c -b", ".60 c a -a -c"),
    *_latent("processes and rwlocks: processes", "r> q> -q -r", ".30 q> r> -r -q"),
    *_latent("join: c c11 c++ python", "a -a", ".30 a j0 -a"),
    *_latent("join and rwlock", "r< -r", ".30 r> j0 -r"),
    *_latent("join of a join", "a -a", "j0", ".30 a j1 -a"),
    *_latent("nested monitor: c c++ python", "a -a .40 b k! -b", ".20 a b k@b -b -a"),
    *_latent("nested broadcast", "a -a .40 b k* -b", ".20 a b k@b -b -a"),
    *_latent("nested monitor and rwlock", "r< -r .40 b k! -b", ".20 r> b k@b -b -r"),
    *_latent("nested monitor inside", "b -b .40 a k! -a", ".20 a b k@a -b -a"),
    *_latent("barrier", "a -a B", ".30 a B -a"),
    *_latent("semaphores", "s t -t -s", ".30 t s -s -t"),
    *_latent("semaphores in three", "s t -t -s", ".30 t u -u -t", ".60 u s -s -u"),
    *_latent("semaphore and mutex", "s a -a -s", ".30 a s -s -a"),
    *_latent("semaphore and rwlock", "s r> -r -s", ".30 r> s -s -r"),
    *_latent("result", "a -a .40 -z", ".20 a z -a"),
    *_latent("lost signal: c c++", "a k@@a -a", ".30 a k! -a", kind=_LOST),
    *_latent("lost broadcast", "a k@@a -a", "a k@@a -a", ".30 a k* -a", kind=_LOST),
    *_latent("look, then wait", "k#a", ".30 a k! -a", kind=_LOST),
    *_latent("signal without the mutex", "k#a", ".30 k!", kind=_LOST),
]  # fmt: skip

SAFE: list[Latent] = [
    *_latent("gate: c wrapped c11 c++ processes python", "g a b -b -a -g", ".30 g b a -a -b -g"),
    *_latent("gate of three", "g a b -b -a -g", ".30 g b c -c -b -g", ".60 g c a -a -c -g"),
    *_latent("rwlock as gate", "r> a b -b -a -r", ".30 r> b a -a -b -r"),
    *_latent("reader and writer as gate", "r< a b -b -a -r", ".30 r> b a -a -b -r"),
    *_latent("semaphore as gate", "s a b -b -a -s", ".30 s b a -a -b -s"),
    *_latent("joined before: c c11 c++ python", "main: c0 j0 c1", "a b -b -a", "b a -a -b"),
    *_latent("joined before, writers", "main: c0 j0 c1", "r> q> -q -r", "q> r> -r -q"),
    *_latent("joined before, semaphores", "main: c0 j0 c1", "s t -t -s", "t s -s -t"),
    *_latent("condition between: c c++ python", "a b -b -a .30 m k! -m", "m k@m -m b a -a -b"),
    *_latent("broadcast between", "r> q> -q -r .30 m k* -m", "m k@m -m q> r> -r -q"),
    *_latent("semaphore between: c c11", "a b -b -a .30 -z", "z b a -a -b"),
    *_latent("barrier between", "a b -b -a .30 B", "B b a -a -b"),
    *_latent("flag between: c c++ python", "a b -b -a .30 %1!", "%1? b a -a -b"),
    *_latent("pipe between: c processes", "a b -b -a .30 |!", "|? b a -a -b"),
    *_latent("one thread: c c11 python", "a b -b -a .30 b a -a -b"),
    *_latent("only tries", "a b? -b? -a", ".30 b a? -a? -b"),
    *_latent("with a time limit", "a b~ -b? -a", ".30 b a~ -a? -b"),
    *_latent("only readers", "r< q< -q -r", ".30 q< r< -r -q"),
    *_latent("same code in one order", "a&b", ".30 b&c", ".60 a&c"),
    *_latent("reader reads again", "r< r< -r -r", ".30 r> -r"),
    *_latent("join after a flag", "a -a %1!", ".30 %1? a j0 -a"),
    *_latent("join with a reader", "r< -r", ".30 r< j0 -r"),
    *_latent("monitor after a flag", "a -a %1! .40 b k! -b", ".20 %1? a b k@b -b -a"),
    *_latent("barrier after a flag", "a -a %1! B", ".30 %1? a B -a"),
    *_latent("result after a flag", "a -a %1! .40 -z", ".20 %1? a z -a"),
    *_latent("signal with a flag: c c++", "a k@a -a", ".30 a k! -a", kind=_LOST),
    *_latent("broadcast with a flag", "a k@a -a", "a k@a -a", ".30 a k* -a", kind=_LOST),
]  # fmt: skip


class _Program:
    """Words as statements of a language."""

    patterns: tuple[tuple[str, str], ...] = ()

    def __init__(self, latent: Latent) -> None:
        self.latent = latent
        self.main = ""
        self.threads: list[str] = []
        for line in latent.threads:
            if line.startswith("main:"):
                self.main = line.removeprefix("main:")
            else:
                self.threads.append(line)
        words = {word for line in latent.threads for word in line.split()}
        if not self.main:
            self.main = " ".join(f"c{number}" for number in range(len(self.threads)))
        for number in range(len(self.threads)):
            if f"j{number}" not in words:
                self.main += f" j{number}"

    def statement(self, word: str) -> str:
        """Return a word as a statement."""
        for pattern, text in self.patterns:
            match = re.fullmatch(pattern, word)
            if match is not None:
                return Template(text).substitute(
                    {f"_{n}": group for n, group in enumerate(match.groups(), 1)}
                )
        raise ValueError(word)


_C_PATTERNS = (
    (r"([a-gm])", "LOCK(&$_1);"), (r"-([a-gm])", "UNLOCK(&$_1);"),
    (r"([a-gm])\?", "got_$_1 = TRY(&$_1);"), (r"([a-gm])~", "got_$_1 = TIMED(&$_1);"),
    (r"-([a-gm])\?", "if (got_$_1) UNLOCK(&$_1);"),
    (r"([pqr])<", "READ(&$_1);"), (r"([pqr])>", "WRITE(&$_1);"), (r"-([pqr])", "FREE(&$_1);"),
    (r"-([pqr])<", "FREE_READ(&$_1);"),
    (r"([stuz])", "sem_wait(&$_1);"), (r"-([stuz])", "sem_post(&$_1);"),
    (r"k@([a-gm])", "WAIT(while (!flag), &$_1);"), (r"k@@([a-gm])", "WAIT(, &$_1);"),
    (r"k#([a-gm])", "if (!flag) { LOCK(&$_1); WAIT(, &$_1); UNLOCK(&$_1); }"),
    (r"k!", "flag = 1; SIGNAL();"), (r"k\*", "flag = 1; BROADCAST();"),
    (r"([a-g])&([a-g])", "both(&$_1, &$_2);"),
    (r"\.(\d+)", "usleep($_1 * 1000);"), (r"\{(\d+)", "for (int i = 0; i < $_1; i++) {"),
    (r"\}", "}"), (r"j(\d)", "JOIN($_1);"), (r"c(\d)", "CREATE($_1);"),
    ("B", "pthread_barrier_wait(&barrier);"),
    (r"%1!", "polled = 1;"), (r"%1\?", "while (!polled) usleep(1000);"),
    (r"\|!", 'if (write(ends[1], "", 1) != 1) return;'),
    (r"\|\?", "if (read(ends[0], &byte, 1) != 1) return;"),
)  # fmt: skip

_C_HEAD = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>
static struct shared {
	$mutex a, b, c, d, e, f, g, m;
	pthread_rwlock_t p, q, r;
	sem_t s, t, u, z;
	pthread_cond_t k;
	pthread_barrier_t barrier;
	atomic_int flag, polled;
} *all;
#define a (all->a)
#define b (all->b)
#define c (all->c)
#define d (all->d)
#define e (all->e)
#define f (all->f)
#define g (all->g)
#define m (all->m)
#define p (all->p)
#define q (all->q)
#define r (all->r)
#define s (all->s)
#define t (all->t)
#define u (all->u)
#define z (all->z)
#define flag (all->flag)
#define polled (all->polled)
#define barrier (all->barrier)
static int ends[2];
$calls
#define READ pthread_rwlock_rdlock
#define WRITE pthread_rwlock_wrlock
#define FREE pthread_rwlock_unlock
#define FREE_READ pthread_rwlock_unlock
#define SIGNAL() pthread_cond_signal(&all->k)
#define BROADCAST() pthread_cond_broadcast(&all->k)
static __attribute__((noinline)) void both($mutex *one, $mutex *two)
{
	LOCK(one);
	LOCK(two);
	UNLOCK(two);
	UNLOCK(one);
}
static int prepare(void)
{
	pthread_mutexattr_t attr;
	pthread_rwlockattr_t rw;
	int i;

	all = mmap(NULL, sizeof(*all), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_init(&attr);
	pthread_rwlockattr_init(&rw);
	$attributes
	for (i = 0; i < 8; i++)
		$initialize;
	for (i = 0; i < 3; i++)
		pthread_rwlock_init(&(&p)[i], &rw);
	for (i = 0; i < 3; i++)
		sem_init(&(&s)[i], 0, 1);
	sem_init(&z, 0, 0);
	pthread_cond_init(&all->k, NULL);
	pthread_barrier_init(&barrier, NULL, 2);
	return pipe(ends);
}
static void (*const work[])(void);
"""

_PTHREAD_CALLS = r"""
#define LOCK $lock
#define UNLOCK pthread_mutex_unlock
#define TRY(x) (pthread_mutex_trylock(x) == 0)
static int timed(pthread_mutex_t *x)
{
	struct timespec limit;

	clock_gettime(CLOCK_REALTIME, &limit);
	limit.tv_sec += 2;
	return pthread_mutex_timedlock(x, &limit) == 0;
}
#define TIMED timed
#define WAIT(loop, x) loop pthread_cond_wait(&all->k, x)
static __attribute__((noinline)) void take(pthread_mutex_t *x) { pthread_mutex_lock(x); }
"""

_C11_CALLS = r"""
#define LOCK mtx_lock
#define UNLOCK mtx_unlock
#define TRY(x) (mtx_trylock(x) == thrd_success)
"""

_THREADS = r"""
static pthread_t threads[8];
static void *run(void *number)
{
	work[(long)number]();
	return NULL;
}
#define CREATE(n) pthread_create(&threads[n], NULL, run, (void *)(long)n)
#define JOIN(n) pthread_join(threads[n], NULL)
"""

_PROCESSES = r"""
static pid_t children[8];
#define CREATE(n) do { if ((children[n] = fork()) == 0) { work[n](); _exit(0); } } while (0)
#define JOIN(n) waitpid(children[n], NULL, 0)
"""

_CPP_HEAD = r"""
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <unistd.h>
static std::mutex a, b, c, d, e, f, g, m;
static std::shared_mutex p, q, r;
static std::condition_variable k;
static std::atomic<int> flag, polled;
static std::thread threads[8];
#define LOCK(x) (x)->lock()
#define UNLOCK(x) (x)->unlock()
#define READ(x) (x)->lock_shared()
#define WRITE(x) (x)->lock()
#define FREE(x) (x)->unlock()
#define FREE_READ(x) (x)->unlock_shared()
#define WAIT(loop, x)                                                        \
	do {                                                                 \
		std::unique_lock<std::mutex> held(*(x), std::adopt_lock);    \
		loop k.wait(held);                                           \
		held.release();                                              \
	} while (0)
#define SIGNAL() k.notify_one()
#define BROADCAST() k.notify_all()
#define CREATE(n) threads[n] = std::thread(work[n])
#define JOIN(n) threads[n].join()
static int prepare() { return 0; }
extern void (*const work[])();
"""

_C11_INIT = "mtx_init(&(&a)[i], mtx_plain)"
_PTHREAD_INIT = "pthread_mutex_init(&(&a)[i], &attr)"
_ATTRIBUTES = {
    "recursive": "pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);",
    "robust": "pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);",
    "inherit": "pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);",
    "writers-first": "pthread_rwlockattr_setkind_np(&rw, "
    "PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);",
    "processes": "pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);"
    " pthread_rwlockattr_setpshared(&rw, PTHREAD_PROCESS_SHARED);",
}  # fmt: skip


class _C(_Program):
    patterns = _C_PATTERNS

    def text(self) -> str:
        """Return the program."""
        way = self.latent.way
        if way == "c++":
            head = _CPP_HEAD
        else:
            c11 = way == "c11"
            calls = _C11_CALLS if c11 else _PTHREAD_CALLS
            lock = "take" if way == "wrapped" else "pthread_mutex_lock"
            head = Template(_C_HEAD).substitute(
                mutex="mtx_t" if c11 else "pthread_mutex_t",
                calls=calls.replace("$lock", lock),
                attributes=_ATTRIBUTES.get(way, ""),
                initialize=_C11_INIT if c11 else _PTHREAD_INIT,
            ) + (_PROCESSES if way == "processes" else _THREADS)  # fmt: skip
        functions = "".join(
            self._function(f"thread_{number}", line) for number, line in enumerate(self.threads)
        )
        names = ", ".join(f"thread_{number}" for number in range(len(self.threads)))
        table = f"{'' if way == 'c++' else 'static '}void (*const work[])(void) = {{{names}}};\n"
        main = self._function("first", self.main)
        start = "int main(void) { if (prepare()) return 1; first(); return 0; }\n"
        return f"{head}{functions}{table}{main}{start}"

    def _function(self, name: str, line: str) -> str:
        words = line.split()
        tried = sorted({word[0] for word in words if re.fullmatch(r"[a-gm][?~]", word)})
        flags = "".join(f"\tint got_{name} = 0;\n" for name in tried)
        byte = "\tchar byte;\n" if "|?" in words else ""
        body = "".join(f"\t{self.statement(word)}\n" for word in words)
        return f"static void {name}(void)\n{{\n{flags}{byte}{body}}}\n"


class _Python(_Program):
    patterns = (
        (r"([a-gm])", "$_1.acquire()"), (r"-([a-gm])", "$_1.release()"),
        (r"k@([a-gm])", "k_wait($_1)"), (r"k!", "k_set()"), (r"\.(\d+)", "time.sleep($_1 / 1000)"),
        (r"j(\d)", "threads[$_1].join()"), (r"c(\d)", "threads[$_1].start()"),
        (r"%1!", "polled.append(1)"), (r"%1\?", "poll()"),
    )  # fmt: skip

    def text(self) -> str:
        """Return the program."""
        mutex = "".join(re.findall(r"k@([a-gm])", " ".join(self.threads)))[:1] or "m"
        functions = "".join(
            f"def thread_{number}():\n"
            + "".join(f"    {self.statement(word)}\n" for word in line.split())
            for number, line in enumerate(self.threads)
        )
        names = ", ".join(f"thread_{number}" for number in range(len(self.threads)))
        main = "".join(f"{self.statement(word)}\n" for word in self.main.split())
        return (
            "import threading, time\n"
            "a, b, c, d, e, f, g, m = (threading.Lock() for _ in range(8))\n"
            f"k, flags, polled = threading.Condition({mutex}), [], []\n"
            "def k_wait(_):\n    while not flags:\n        k.wait()\n"
            "def k_set():\n    flags.append(1)\n    k.notify()\n"
            "def poll():\n    while not polled:\n        time.sleep(0.001)\n"
            f"{functions}threads = [threading.Thread(target=f) for f in ({names},)]\n{main}"
        )
