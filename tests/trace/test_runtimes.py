"""Runtimes with locks of their own are named, whatever their version."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Compiler, Ptt, Recorder

LIBRARIES = (
    "libruby-3.1.so.3.1", "libmonosgen-2.0.so.1", "libguile-3.0.so.1", "threads/shared/shared.so",
    "libHSrts-1.0.2_thr-ghc9.0.2.so",
)  # fmt: skip
LOADS = """
    #include <dlfcn.h>
    #include <pthread.h>
    int main(int count, char **paths)
    {
        pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
        for (int i = 1; i < count; i++)
            if (!dlopen(paths[i], RTLD_NOW))
                return 1;
        return pthread_mutex_lock(&mutex);
    }
"""


def test_runtimes_are_not_covered(
    compile_c: Compiler, record: Recorder, ptt: Ptt, tmp_path: Path
) -> None:
    empty = compile_c("int nothing;", "-shared", "-fPIC", name="empty.so")
    paths = [tmp_path / name for name in (*LIBRARIES, "other/shared.so")]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(empty.read_bytes())
    go = '__attribute__((section(".go.buildinfo"), used)) char info[32];'
    program = compile_c(go + LOADS)
    trace = record(program, *map(str, paths))
    said = json.loads(ptt("stat", "--format", "json", trace).stdout)["uncovered"]
    assert {one["module"] for one in said} == {*map(str, paths[:-1]), str(program)}
    assert "Perl" in next(one["why"] for one in said if "threads" in one["module"])
