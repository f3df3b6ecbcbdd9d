"""Call sites: return addresses of calls, entries of threads, and one identity for each."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from nptltrace.trace.code.call_site import ENTRY, address_of_site, is_entry
from tests.trace.builder import Builder, Event

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Compiler, Ptt, Recorder

# The instruction before the first of `worker` belongs to `earlier`.
NEIGHBOURS = """
#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
__asm__(".text\\n.globl earlier, worker\\n.type earlier, @function\\n.type worker, @function\\n"
        "earlier: nop\\n ret\\n.size earlier, . - earlier\\n"
        "worker: jmp work\\n.size worker, . - worker");
__attribute__((used)) void *work(void *arg)
{
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    return arg;
}
void *worker(void *arg);
int main(void)
{
    pthread_t thread;
    pthread_create(&thread, 0, worker, 0);
    return pthread_join(thread, 0);
}
"""


@pytest.mark.parametrize("handler", ["ring", "shared"])
def test_the_site_of_a_new_thread_is_its_routine(
    handler: str, record: Recorder, compile_c: Compiler, ptt: Ptt, tmp_path: Path
) -> None:
    trace = record(compile_c(NEIGHBOURS, "-pthread"), options=("--handler", handler))
    begin, = (
        event
        for event in map(json.loads, ptt("view", "--format", "jsonl", trace).stdout.splitlines())
        if event["event"] == "THREAD_BEGIN"
    )  # fmt: skip
    assert begin["site_name"] == "worker"
    assert begin["site"] == begin["start_routine"]
    for wanted in ("worker", begin["site"]):
        found = ptt("view", "--site", wanted, "--format", "csv", trace).stdout.splitlines()
        assert [line.split(",")[6] for line in found[1:]] == ["THREAD_BEGIN"]
    assert "earlier" not in ptt("view", trace).stdout
    assert len(ptt("view", "--site", "earlier", "--format", "csv", trace).stdout.splitlines()) <= 1
    query = (
        "select s.site, e.site from events e join stacks using (stack_id) "
        "join sites s using (site_id) "
        "where e.event = 'THREAD_BEGIN'"
    )
    (row,) = json.loads(ptt("sql", "--format", "json", trace, query).stdout)
    assert list(row.values()) == ["worker", begin["site"]]
    out = tmp_path / "tables"
    ptt("export", "--to", "csv", "-o", out, trace)
    assert "earlier" not in "".join(file.read_text() for file in out.glob("*.csv"))


def test_a_site_has_an_address_and_flags() -> None:
    assert address_of_site(ENTRY | 3 << 48 | 0x7F00_1234_5678) == 0x7F00_1234_5678
    assert is_entry(ENTRY | 1)
    assert not is_entry(0x7FFF << 48 | 1)


MEMORY = """
import resource, sys
from nptltrace.api import Traceset
source = Traceset(sys.argv[1])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def test_call_sites_of_many_processes_take_little_memory(tmp_path: Path, ptt: Ptt) -> None:
    peak = {}
    for count in (1, 2001):
        made = Builder(tmp_path / f"{count}.ptt")
        made.thread(100, [Event(10**12, "MUTEX_TAKEN", 0x4040, 1)])
        # numbers are hashes: they lie far apart
        sites = {str(n): hex(0x401000 + n) for n in range(1, 60000, 2000)}
        for index in range(count):
            made.processes.append({"process": {"index": index, "pid": 100 + index}})
            made.processes.append({"sites": {"process": index, "sites": sites}})
        argv = [sys.executable, "-c", MEMORY, str(made.write())]
        done = subprocess.run(
            argv, env=ptt.environment(), capture_output=True, text=True, check=True
        )
        peak[count] = int(done.stdout) << 10
    # this includes Python's own data about each process
    assert (peak[2001] - peak[1]) / 2000 < 24_000


def test_a_call_site_of_several_processes_has_one_row(tmp_path: Path, ptt: Ptt) -> None:
    made = Builder(tmp_path / "t.ptt")
    module = {"path": "/bin/x", "build_id": "ab", "start": "0x1000", "end": "0x9000", "bias": "0x0"}
    for index in range(3):
        made.thread(100 + index, [Event(10**12 + index, "MUTEX_TAKEN", 0x8040, 7)], process=index,
                    pid=100 + index)  # fmt: skip
        made.processes += [
            {"process": {"index": index, "pid": 100 + index}},
            {"modules": {"process": index, "modules": [module]}},
            {"sites": {"process": index, "sites": {"7": "0x2000"}}},
        ]
    trace = made.write()
    query = "select (select count(*) from sites) as sites, (select count(*) from stacks) as stacks"
    assert json.loads(ptt("sql", "--format", "json", trace, query).stdout) == [
        {"sites": 1, "stacks": 1}
    ]
