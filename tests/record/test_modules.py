"""Closed modules: new code at their addresses gets its own names."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.handlers.helpers import run_traced

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Compiler, Ptt, Recorder

# Equal in every byte except the name, so that the second lies at the first's addresses.
PLUGIN = """
#include <pthread.h>
static void *begin_of_NAME(void *arg) { return arg; }
static __attribute__((noinline)) void loop_of_NAME(pthread_mutex_t *mutex, int times)
{
    pthread_t thread;
    for (int i = 0; i < times; i++) {
        pthread_mutex_lock(mutex);
        pthread_mutex_unlock(mutex);
    }
    pthread_create(&thread, 0, begin_of_NAME, 0);
    pthread_join(thread, 0);
}
void work(pthread_mutex_t *mutex, int times) { loop_of_NAME(mutex, times); }
"""
HOST = """
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
pthread_mutex_t of_a = PTHREAD_MUTEX_INITIALIZER, of_b = PTHREAD_MUTEX_INITIALIZER;
static void call(const char *path, pthread_mutex_t *mutex)
{
    void *plugin = dlopen(path, RTLD_NOW);
    void (*work)(pthread_mutex_t *, int) = (void (*)(pthread_mutex_t *, int))dlsym(plugin, "work");
    static void *first;
    if (first && first != (void *)work)
        exit(77); /* elsewhere: the case did not occur */
    first = (void *)work;
    work(mutex, 10);
    dlclose(plugin);
}
int main(int argc, char **argv)
{
    for (int round = 0; round < 3; round++) {
        call(argv[1], &of_a);
        if (argc > 3)
            rename(argv[3], argv[1]);
        call(argv[2], &of_b);
        if (argc > 3)
            return 0;
    }
    if (fork() == 0) {
        call(argv[2], &of_b);
        call(argv[1], &of_a);
        return 0;
    }
    return wait(0) > 0 ? 0 : 1;
}
"""


def _plugin(compile_c: Compiler, name: str, to: Path) -> Path:
    text = PLUGIN.replace("NAME", name)
    made = compile_c(text, "-shared", "-fPIC", "-O1", "-fno-optimize-sibling-calls", "-fno-inline",
                     "-pthread", "-Wl,--build-id")  # fmt: skip
    to.write_bytes(made.read_bytes())
    return to


def _events(ptt: Ptt, trace: Path, *options: str) -> list[dict[str, object]]:
    lines = ptt("view", "--format", "jsonl", *options, trace).stdout.splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("handler", ["ring", "shared"])
def test_sites_die_with_their_module(
    handler: str, record: Recorder, compile_c: Compiler, ptt: Ptt, tmp_path: Path
) -> None:
    a, b = (_plugin(compile_c, name, tmp_path / f"{name}.so") for name in ("a", "b"))
    trace = record(compile_c(HOST), str(a), str(b), options=("--handler", handler))
    taken = [e for e in _events(ptt, trace) if e["event"] == "MUTEX_TAKEN"]
    places = Counter((e["object_name"], str(e["site_name"]).partition("+")[0]) for e in taken)
    assert places == {("of_a", "loop_of_a"): 40, ("of_b", "loop_of_b"): 40}
    assert len({e["site"] for e in taken}) == 1  # otherwise this test shows nothing
    begun = [e["site_name"] for e in _events(ptt, trace) if e["event"] == "THREAD_BEGIN"]
    assert Counter(begun) == {"begin_of_a": 4, "begin_of_b": 4}
    events = _events(ptt, trace, "--site", "begin_of_b")
    assert {(e["event"], e["site_name"]) for e in events} == {("THREAD_BEGIN", "begin_of_b")}
    assert len(_events(ptt, trace, "--site", str(taken[0]["site"]), "--event", "MUTEX_TAKEN")) == 80
    views = {
        "select object_name, site from named_holds where object_name in ('of_a', 'of_b')":
            {("of_a", "loop_of_a"), ("of_b", "loop_of_b")},
        "select s.module, s.site from sites s where s.site like 'begin_of_%'":
            {("a.so", "begin_of_a"), ("b.so", "begin_of_b")},
    }  # fmt: skip
    for query, wanted in views.items():
        rows = json.loads(ptt("sql", "--format", "json", trace, query).stdout)
        pairs = {tuple(str(v).partition("+")[0] for v in r.values()) for r in rows}
        assert pairs == wanted
    copy = tmp_path / "copy.ptt"
    ptt("cut", "--from", "0", "-o", copy, trace)
    assert [e["site_name"] for e in _events(ptt, copy)] == [
        e["site_name"] for e in _events(ptt, trace)
    ]
    report = json.loads(ptt("report", "--by", "site", "--format", "json", trace).stdout)
    sites = {item["site"].partition("+")[0] for item in report["sites"] if item["kind"] == "mutex"}
    assert sites == {"loop_of_a", "loop_of_b"}
    modules = json.loads(
        ptt("sql", "--format", "json", trace,
            "select distinct name from modules where name like '_.so'").stdout
    )  # fmt: skip
    assert {row["name"] for row in modules} == {"a.so", "b.so"}


def test_sites_die_with_their_module_without_a_recorder(
    compile_c: Compiler, ptt: Ptt, tmp_path: Path
) -> None:
    for name in ("a", "b"):
        _plugin(compile_c, name, tmp_path / f"{name}.so")
    host, a = compile_c(HOST), tmp_path / "a.so"
    done = run_traced(ptt, "text", host, a, "./b.so", cwd=tmp_path)
    assert done.returncode == 0
    taken = re.findall(r" took mutex (0x\w+) at (\S+)\+0x\w+$", done.stderr, re.MULTILINE)
    assert len({address for address, _ in taken}) == 2
    assert Counter(module for _, module in taken) == {"a.so": 40, "b.so": 40}
    done = run_traced(ptt, f"file:{tmp_path}/run.ptt", host, a, "./b.so", cwd=tmp_path)
    assert done.returncode == 0
    taken_at = [e for e in _events(ptt, tmp_path / "run.ptt") if e["event"] == "MUTEX_TAKEN"]
    places = Counter((e["object_name"], str(e["site_name"]).partition("+")[0]) for e in taken_at)
    assert places == {("of_a", "loop_of_a"): 30, ("of_b", "loop_of_b"): 30}
    assert len({e["site"] for e in taken_at}) == 1  # otherwise this test shows nothing


def test_a_file_that_was_replaced_lends_its_names_to_nobody(
    record: Recorder, compile_c: Compiler, ptt: Ptt, tmp_path: Path
) -> None:
    old = _plugin(compile_c, "a", tmp_path / "plugin.so")
    new = _plugin(compile_c, "b", tmp_path / "new.so")
    trace = record(compile_c(HOST), str(old), str(old), str(new))
    names: dict[object, set[str]] = {}
    for event in _events(ptt, trace):
        if event["event"] == "THREAD_BEGIN":
            names.setdefault("begun", set()).add(str(event["site_name"]))
    assert "begin_of_b" in names["begun"]
    assert len(names["begun"]) == 2
    (other,) = names["begun"] - {"begin_of_b"}
    assert other.startswith(("plugin.so+0x", "begin_of_a"))


def test_a_program_with_holes_is_one_module(record: Recorder, compile_c: Compiler) -> None:
    """The dynamic linker maps the segments of such a program one by one."""
    text = """
    #include <pthread.h>
    int main(void)
    {
        static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
        return pthread_mutex_lock(&mutex) + pthread_mutex_unlock(&mutex);
    }
    """
    pages = "-Wl,-z,separate-code,-z,max-page-size=0x200000"
    program = compile_c(text, pages)
    trace = record(program)
    lines = (trace / "info" / "processes.jsonl").read_text(encoding="utf-8").splitlines()
    modules = [m for line in lines for m in json.loads(line).get("modules", {}).get("modules", [])]
    ours = {(m["start"], m["build_id"]) for m in modules if m["path"] == str(program)}
    assert len(ours) == 1, ours
    assert any("since_clock" in m for m in modules if m["path"] == str(program))


RACE = """
#include <dlfcn.h>
#include <pthread.h>
pthread_mutex_t of_a = PTHREAD_MUTEX_INITIALIZER, of_b = PTHREAD_MUTEX_INITIALIZER;
static char **path;
static void *run(void *mutex)
{
    for (int round = 0; round < 500; round++) {
        void *plugin = dlopen(path[mutex == &of_a ? 1 : 2], RTLD_NOW);
        ((void (*)(void *, int))dlsym(plugin, "work"))(mutex, 3);
        dlclose(plugin);
    }
    return 0;
}
int main(int argc, char **argv)
{
    pthread_t thread;
    path = argv;
    pthread_create(&thread, 0, run, &of_a);
    run(&of_b);
    return pthread_join(thread, 0);
}
"""


def test_sites_stay_right_when_two_threads_swap_modules(
    record: Recorder, compile_c: Compiler, ptt: Ptt, tmp_path: Path
) -> None:
    a, b = (_plugin(compile_c, name, tmp_path / f"{name}.so") for name in ("a", "b"))
    trace = record(compile_c(RACE), str(a), str(b))
    taken = [e for e in _events(ptt, trace) if e["event"] == "MUTEX_TAKEN"]
    places = Counter((e["object_name"], str(e["site_name"]).partition("+")[0]) for e in taken)
    assert places == {("of_a", "loop_of_a"): 1500, ("of_b", "loop_of_b"): 1500}


ROUNDS = """
#include <dlfcn.h>
#include <fstream>
#include <iostream>
#include <mutex>
#include <string>
static std::mutex first, last;
static long resident()
{
    long pages, whole;
    std::ifstream("/proc/self/statm") >> whole >> pages;
    return pages * 4;
}
int main(int, char **argv)
{
    long before = 0;
    for (int round = 0; round < 3000; round++) {
        void *plugin = dlopen(argv[1], RTLD_NOW);
        auto work = reinterpret_cast<void (*)(std::mutex *)>(dlsym(plugin, "plugin_work"));
        work(round < 1500 ? &first : &last);
        dlclose(plugin);
        if (round == 300)
            before = resident();
    }
    std::cout << resident() - before << std::endl;
}
"""


def test_modules_may_come_and_go_forever(compile_c: Compiler, ptt: Ptt, tmp_path: Path) -> None:
    source, host = tmp_path / "plugin.cc", tmp_path / "host.cc"
    source.write_text(
        "#include <mutex>\n"
        'extern "C" void plugin_work(std::mutex *m) { std::lock_guard<std::mutex> guard(*m); }\n'
    )
    host.write_text(ROUNDS)
    plugin = compile_c(source, "-x", "c++", "-O0", "-shared", "-fPIC", "-lstdc++")
    program = compile_c(host, "-x", "c++", "-O0", "-lstdc++")
    trace = tmp_path / "t.ptt"
    grown = ptt("record", "-q", "-o", trace, "--", program, plugin).stdout
    assert int(grown) < 1024  # KiB
    taken = [e for e in _events(ptt, trace) if e["event"] == "MUTEX_TAKEN"]
    assert len(taken) == 3000
    assert {str(e["site_name"]).partition("+")[0] for e in taken} == {"plugin_work"}
