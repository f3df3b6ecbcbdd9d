"""Static variables in C++ functions: which thread initializes them."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.hang.looking import asleep, running

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Ptt

# A thread initializes a static and wants a mutex; the mutex's holder wants the static. Or the
# function that initializes the static calls itself.
PROGRAM = """
#include <atomic>
#include <mutex>
#include <thread>
std::mutex engine;
static std::atomic<bool> has_engine, has_table;
struct Table {
    int entries = 0;
    Table()
    {
        has_table = true;
        while (!has_engine)
            std::this_thread::yield();
        std::lock_guard<std::mutex> lock(engine);
        entries = 1;
    }
};
static Table &table()
{
    static Table one;
    return one;
}
static int again(int depth)
{
    static int value = depth ? again(depth - 1) : 1;
    return value;
}
int main(int count, char **)
{
    std::thread other([count] { count > 1 ? again(1) : table().entries; });
    if (count == 1) {
        std::lock_guard<std::mutex> lock(engine);
        while (!has_table)
            std::this_thread::yield();
        has_engine = true;
        table().entries++;
    }
    other.join();
}
"""


@pytest.mark.parametrize("optimized", ["-O0", "-O2"])
def test_the_initializer_of_a_static_is_its_owner(optimized: str, ptt: Ptt, tmp_path: Path) -> None:
    program = tmp_path / "prog"
    flags = ["-std=c++17", "-g", optimized, "-pthread", "-x", "c++", "-"]
    command = ["g++", *flags, "-o", str(program)]
    subprocess.run(command, input=PROGRAM, encoding="utf-8", check=True)
    with running(program) as pid:
        (finding,) = asleep(ptt, pid, 2)["findings"]
    assert finding["kind"] == "deadlock"
    assert "guard variable for table()::one, initialized by thread " in finding["message"]
    assert "waits for mutex engine, held by thread " in finding["message"]
    with running(program, "again") as pid:
        findings = asleep(ptt, pid, 2)["findings"]
    assert [finding["kind"] for finding in findings] == ["self-deadlock"]
