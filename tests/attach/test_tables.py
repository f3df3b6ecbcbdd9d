"""Programs that change their own tables of imported functions, or the tables' memory."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.attach.test_attach import attached, facts_of, send

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support import Ptt

# The program's table has an entry for the program's own function, and is writable. The table of
# `hard.so` is read-only. The headers of `closed.so` are unreadable. `handlers/libown.so` is an
# ordinary library.
PROGRAM = """
    #define _GNU_SOURCE
    #include <dlfcn.h>
    #include <link.h>
    #include <pthread.h>
    #include <stdint.h>
    #include <stdio.h>
    #include <string.h>
    #include <sys/mman.h>
    #include <unistd.h>
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static int (*real)(pthread_mutex_t *);
    static volatile long own;
    static void (*called[3])(void);
    static char before[65536], now[65536];
    static int own_lock(pthread_mutex_t *mutex)
    {
        own++;
        return real(mutex);
    }
    static void **entry_of(struct link_map *map, const char *name)
    {
        const ElfW(Sym) *symbol = NULL;
        const char *names = NULL;
        const ElfW(Rela) *r = NULL;
        size_t size = 0;
        for (ElfW(Dyn) *d = map->l_ld; d->d_tag; d++) {
            if (d->d_tag == DT_SYMTAB) symbol = (void *)d->d_un.d_ptr;
            if (d->d_tag == DT_STRTAB) names = (void *)d->d_un.d_ptr;
            if (d->d_tag == DT_JMPREL) r = (void *)d->d_un.d_ptr;
            if (d->d_tag == DT_PLTRELSZ) size = d->d_un.d_val;
        }
        for (size_t i = 0; i < size / sizeof(*r); i++)
            if (strcmp(names + symbol[ELF64_R_SYM(r[i].r_info)].st_name, name) == 0)
                return (void **)(map->l_addr + r[i].r_offset);
        return NULL;
    }
    static void protect(const void *at, int protection)
    {
        mprotect((void *)((uintptr_t)at & ~4095ul), 4096, protection);
    }
    static struct link_map *open_library(int number, const char *path)
    {
        void *library = dlopen(path, RTLD_LAZY);
        struct link_map *map = NULL;
        dlinfo(library, RTLD_DI_LINKMAP, &map);
        called[number] = (void (*)(void))dlsym(library, "called");
        return map;
    }
    static void read_maps(char *to)
    {
        FILE *file = fopen("/proc/self/maps", "r");
        char line[512];
        *to = 0;
        while (fgets(line, sizeof(line), file))
            if (strstr(line, "hard.so") || strstr(line, "closed.so") || strstr(line, "/program"))
                strcat(to, line);
        fclose(file);
    }
    static void use(void)
    {
        for (int i = 0; i < 100; i++) {
            pthread_mutex_lock(&mutex);
            pthread_mutex_unlock(&mutex);
            for (int k = 0; k < 3; k++)
                called[k]();
        }
    }
    static void *sleep_for_ever(void *unused)
    {
        for (;;)
            pause();
        return unused;
    }
    int main(void)
    {
        void **entry;
        pthread_t thread;
        char line[64];
        struct link_map *map;
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
        entry = entry_of(_r_debug.r_map, "pthread_mutex_lock");
        real = (int (*)(pthread_mutex_t *))*entry;
        protect(entry, PROT_READ | PROT_WRITE);
        *entry = (void *)own_lock;
        open_library(0, "./handlers/libown.so");
        map = open_library(1, "./hard.so");
        called[1]();
        protect(entry_of(map, "pthread_mutex_lock"), PROT_READ);
        map = open_library(2, "./closed.so");
        called[2]();
        mprotect((void *)map->l_addr, 4096, PROT_NONE);
        pthread_create(&thread, NULL, sleep_for_ever, NULL);
        puts("ready");
        fflush(stdout);
        read_maps(before);
        while (fgets(line, sizeof(line), stdin)) {
            long first = own;
            use();
            read_maps(now);
            *entry = (void *)own_lock;
            printf("%ld by its own, ", own - first);
            printf("maps %s\\n", strcmp(before, now) ? now : "as before");
            fflush(stdout);
        }
        _exit(0);
    }
"""
LIBRARY = """
    #include <pthread.h>
    static pthread_mutex_t {0} __attribute__((aligned(4096))) = PTHREAD_MUTEX_INITIALIZER;
    void called(void)
    {{
        pthread_mutex_lock(&{0});
        pthread_mutex_unlock(&{0});
    }}
"""


@pytest.mark.parametrize("binding", ["lazy", "now"])
def test_the_programs_own_changes_stay(
    binding: str,
    ptt: Ptt,
    compile_c: Callable[..., Path],
    start: Callable[..., Any],
    tmp_path: Path,
) -> None:
    trace = tmp_path / "run.ptt"
    (tmp_path / "handlers").mkdir()
    for path in ("handlers/libown.so", "hard.so", "closed.so"):
        name = path.rpartition("/")[2].removeprefix("lib").removesuffix(".so")
        built = compile_c(LIBRARY.format(name), "-shared", "-fPIC", f"-Wl,-z,{binding}")
        built.rename(tmp_path / path)
    program = compile_c(PROGRAM, f"-Wl,-z,{binding}").rename(tmp_path / "program")
    process = start(program)
    untouched = "100 by its own, maps as before"
    assert send(process, "use") == untouched
    with attached(ptt, "-o", trace, str(process.pid)):
        assert send(process, "use") == untouched
    assert send(process, "use") == untouched
    assert facts_of(trace)["attached"]["left"]
    report = json.loads(ptt("report", "--format", "json", trace).stdout)
    holds = {row["name"]: row["holds"] for row in report["objects"]}
    # The closed library is unreadable, so its table stays as it is.
    assert (holds.get("own"), holds.get("hard"), holds.get("closed")) == (100, 100, None)
