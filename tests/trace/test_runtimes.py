"""PTT names runtimes with their own locks, in any version."""

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


# Programs with a runtime inside, which a section or a symbol shows.
INSIDE = {
    "go": '__attribute__((section(".go.buildinfo"), used)) char info[32];',
    "haskell": '__attribute__((section(".debug-ghc-link-info"), used)) char info[32];',
    "stripped-haskell": 'const char *fails = "internal error: %s (GHC version %s for %s)";',
    "native-net": '__attribute__((section("__managedcode"), used)) char code[32];',
    "embeds-mono": "void mono_monitor_enter(void) {}",
    "erlang": "void erl_drv_mutex_lock(void) {}",
}
# Programs and libraries without such a runtime, in spite of their names or symbols.
OTHERS = {
    "ruby": "extern int rb_mutex_synchronize __attribute__((weak)), *at = &rb_mutex_synchronize;",
    "mono-tool": "void mono_monitor_entered(void) {}",
    "postgres-exporter": 'const char *says = "GHC version 9";',
}


def test_loaded_runtimes_are_reported(
    compile_c: Compiler, record: Recorder, ptt: Ptt, tmp_path: Path
) -> None:
    empty = compile_c("int nothing;", "-shared", "-fPIC", name="empty.so")
    go = compile_c(INSIDE["go"], "-shared", "-fPIC", name="plugin-of-go.so")
    paths = [tmp_path / name for name in (*LIBRARIES, "other/shared.so", "mono.so", "ruby-prof.so")]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(empty.read_bytes())
    trace = record(compile_c(LOADS), *map(str, paths), str(go))
    go.unlink()  # the trace must have all facts about the file
    said = _said(ptt, trace)
    assert set(said) == {*map(str, paths[:-3]), str(go)}
    assert "Perl" in next(why for module, why in said.items() if "threads" in module)


def test_runtimes_inside_programs_are_reported(
    compile_c: Compiler, record: Recorder, ptt: Ptt, tmp_path: Path
) -> None:
    programs = {
        name: compile_c(source + LOADS, "-rdynamic", name=name)
        for name, source in (INSIDE | OTHERS).items()
    }
    script = tmp_path / "all.sh"
    script.write_text("\n".join(map(str, programs.values())), encoding="utf-8")
    trace = record("/bin/sh", script)
    for item in programs.values():
        item.unlink()
    assert set(_said(ptt, trace)) == {str(programs[name]) for name in INSIDE}


def _said(ptt: Ptt, trace: Path) -> dict[str, str]:
    said = json.loads(ptt("stat", "--format", "json", trace).stdout)["uncovered"]
    return {module["module"]: module["why"] for module in said}
