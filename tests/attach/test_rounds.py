"""PTT attaches to a difficult program, and lets it go, again and again."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from nptltrace import _paths
from nptltrace.attach.injection import Injection
from nptltrace.attach.recording import AttachOptions, record
from nptltrace.hang.stack.names import Names, OneProcess
from nptltrace.hang.targets.process import Process
from nptltrace.recording.settings.levels import Levels
from nptltrace.recording.settings.options import BufferOptions
from nptltrace.trace.symbols.lookup import Symbols
from tests.attach.test_attach import CALLED, send, threads_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from nptltrace.recording.recorder import Outcome

ROUNDS = 30
# Opens and closes a library, forks, cancels a sleeping thread, leaves a sleep by siglongjmp(), and
# waits for events. Each thread counts its rounds, and reports errors.
HARD = """
    #define _GNU_SOURCE
    #include <dlfcn.h>
    #include <poll.h>
    #include <pthread.h>
    #include <setjmp.h>
    #include <signal.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <sys/epoll.h>
    #include <sys/wait.h>
    #include <unistd.h>
    enum { LOADS, FORKS, CANCELS, JUMPS, WAITS, KINDS };
    static volatile long counts[KINDS];
    static pthread_mutex_t shared = PTHREAD_MUTEX_INITIALIZER, own = PTHREAD_MUTEX_INITIALIZER;
    static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
    static sigjmp_buf place;
    static volatile sig_atomic_t asleep;
    static pthread_t jumper;
    static void bad(const char *what)
    {
        printf("bad %s\\n", what);
        fflush(stdout);
        _exit(1);
    }
    static void *loads(void *unused)
    {
        for (;; counts[LOADS]++, usleep(1000)) {
            void *library = dlopen("./called.so", RTLD_LAZY);
            if (!library)
                bad("load");
            ((void (*)(void))dlsym(library, "called"))();
            dlclose(library);
        }
        return unused;
    }
    static void *forks(void *unused)
    {
        for (;; counts[FORKS]++, usleep(3000)) {
            int status;
            pid_t child = fork();
            if (child == 0) {
                pthread_mutex_lock(&own);
                pthread_mutex_unlock(&own);
                free(malloc(1000));
                _exit(7);
            }
            if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 7)
                bad("child");
        }
        return unused;
    }
    static void unlock(void *mutex)
    {
        pthread_mutex_unlock(mutex);
    }
    static void *waits_for_ever(void *unused)
    {
        pthread_mutex_lock(&shared);
        pthread_cleanup_push(unlock, &shared);
        for (;;)
            pthread_cond_wait(&never, &shared);
        pthread_cleanup_pop(1);
        return unused;
    }
    static void *polls_for_ever(void *unused)
    {
        for (;;)
            poll(NULL, 0, -1);
        return unused;
    }
    static void *cancels(void *unused)
    {
        for (;; counts[CANCELS]++) {
            pthread_t threads[2];
            void *result;
            pthread_create(&threads[0], NULL, waits_for_ever, NULL);
            pthread_create(&threads[1], NULL, polls_for_ever, NULL);
            usleep(2000);
            for (int i = 0; i < 2; i++) {
                pthread_cancel(threads[i]);
                if (pthread_join(threads[i], &result) || result != PTHREAD_CANCELED)
                    bad("cancel");
            }
        }
        return unused;
    }
    static void leave(int number)
    {
        (void)number;
        if (asleep) {
            asleep = 0;
            siglongjmp(place, 1);
        }
    }
    static void *jumps(void *unused)
    {
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGUSR2);
        pthread_sigmask(SIG_UNBLOCK, &set, NULL);
        for (;; counts[JUMPS]++)
            if (!sigsetjmp(place, 1)) {
                asleep = 1;
                poll(NULL, 0, -1);
            }
        return unused;
    }
    static void *signals(void *unused)
    {
        for (;;) {
            pthread_kill(jumper, SIGUSR2);
            usleep(1500);
        }
        return unused;
    }
    static void *waits(void *unused)
    {
        struct epoll_event event;
        int fd = epoll_create1(0);
        for (;; counts[WAITS]++)
            if (epoll_wait(fd, &event, 1, 20) != 0)
                bad("wait");
        return unused;
    }
    int main(void)
    {
        void *(*const routines[])(void *) = {loads, forks, cancels, waits};
        pthread_t thread;
        char line[16];
        sigset_t set;
        signal(SIGUSR2, leave);
        sigemptyset(&set);
        sigaddset(&set, SIGUSR2);
        pthread_sigmask(SIG_BLOCK, &set, NULL);
        for (int i = 0; i < 4; i++)
            pthread_create(&thread, NULL, routines[i], NULL);
        pthread_create(&jumper, NULL, jumps, NULL);
        pthread_create(&thread, NULL, signals, NULL);
        puts("ready");
        fflush(stdout);
        while (fgets(line, sizeof(line), stdin)) {
            for (int i = 0; i < KINDS; i++)
                printf("%ld ", counts[i]);
            puts("");
            fflush(stdout);
        }
        return 0;
    }
"""


def round_of(pid: int, trace: Path, chance: random.Random) -> Outcome:
    """Attach for a few milliseconds."""
    process = Process(pid)
    options = AttachOptions(
        pid=pid, output=trace, levels=Levels(2), buffers=BufferOptions(),
        duration_ns=chance.randrange(5_000_000, 100_000_000), patience_ns=20_000_000_000,
    )  # fmt: skip
    names = Names(Symbols(OneProcess(process)))
    injection = Injection(process, names, _paths.library(_paths.PRELOAD))
    outcome, recording = record(options, injection, lambda: False, lambda _: None, lambda _: False)
    assert recording.has_left
    shutil.rmtree(trace)
    return outcome


def size_of(pid: int) -> int:
    """Return the size of a process's address space in MB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmSize:")[2].split()[0]) >> 10


def progress(process: Any) -> list[int]:
    return [int(word) for word in send(process, "?").split()]


@pytest.mark.usefixtures("native_in_process")
def test_many_rounds_leave_the_process_unchanged(
    compile_c: Callable[..., Path], start: Callable[..., Any], tmp_path: Path
) -> None:
    compile_c(CALLED, "-shared", "-fPIC").rename(tmp_path / "called.so")
    process = start(compile_c(HARD, "-O1"))
    chance = random.Random(1)  # noqa: S311 -- nothing is to be kept secret
    events = lost = 0
    sizes: list[int] = []
    for number in range(ROUNDS):
        before = progress(process)
        sizes.append(size_of(process.pid))
        outcome = round_of(process.pid, tmp_path / str(number), chance)
        events += outcome.stats.events
        lost += outcome.stats.lost
        while any(now <= old for now, old in zip(progress(process), before, strict=True)):
            assert process.poll() is None
    assert events > ROUNDS
    assert lost == 0
    # each round takes 64 MB, and gives back the memory of earlier rounds
    assert max(sizes[10:]) - max(sizes[:10]) < 5 * 64
    # the program's own temporary threads, and no thread of PTT
    assert len(threads_of(process.pid)) <= 9
