"""<trace.h> compiles in every version of C and C++, and declares all that it should."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.posix.building import run
from tests.support import clean_environment

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Ptt

_STRICT = ["-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only"]
# Parameters of each function; together with the results, these are all functions.
_PROTOTYPES = """
int posix_trace_attr_init(trace_attr_t *)
int posix_trace_attr_destroy(trace_attr_t *)
int posix_trace_attr_getgenversion(const trace_attr_t *, char *)
int posix_trace_attr_getname(const trace_attr_t *, char *)
int posix_trace_attr_setname(trace_attr_t *, const char *)
int posix_trace_attr_getcreatetime(const trace_attr_t *, struct timespec *)
int posix_trace_attr_getclockres(const trace_attr_t *, struct timespec *)
int posix_trace_attr_getinherited(const trace_attr_t *, int *)
int posix_trace_attr_setinherited(trace_attr_t *, int)
int posix_trace_attr_getstreamfullpolicy(const trace_attr_t *, int *)
int posix_trace_attr_setstreamfullpolicy(trace_attr_t *, int)
int posix_trace_attr_getlogfullpolicy(const trace_attr_t *, int *)
int posix_trace_attr_setlogfullpolicy(trace_attr_t *, int)
int posix_trace_attr_getmaxdatasize(const trace_attr_t *, size_t *)
int posix_trace_attr_setmaxdatasize(trace_attr_t *, size_t)
int posix_trace_attr_getstreamsize(const trace_attr_t *, size_t *)
int posix_trace_attr_setstreamsize(trace_attr_t *, size_t)
int posix_trace_attr_getmaxsystemeventsize(const trace_attr_t *, size_t *)
int posix_trace_attr_getmaxusereventsize(const trace_attr_t *, size_t, size_t *)
int posix_trace_attr_getlogsize(const trace_attr_t *, size_t *)
int posix_trace_attr_setlogsize(trace_attr_t *, size_t)
int posix_trace_create(pid_t, const trace_attr_t *, trace_id_t *)
int posix_trace_create_withlog(pid_t, const trace_attr_t *, int, trace_id_t *)
int posix_trace_flush(trace_id_t)
int posix_trace_shutdown(trace_id_t)
int posix_trace_clear(trace_id_t)
int posix_trace_start(trace_id_t)
int posix_trace_stop(trace_id_t)
int posix_trace_get_attr(trace_id_t, trace_attr_t *)
int posix_trace_get_status(trace_id_t, struct posix_trace_status_info *)
int posix_trace_eventid_open(const char *, trace_event_id_t *)
int posix_trace_trid_eventid_open(trace_id_t, const char *, trace_event_id_t *)
int posix_trace_eventid_get_name(trace_id_t, trace_event_id_t, char *)
int posix_trace_eventid_equal(trace_id_t, trace_event_id_t, trace_event_id_t)
int posix_trace_eventtypelist_getnext_id(trace_id_t, trace_event_id_t *, int *)
int posix_trace_eventtypelist_rewind(trace_id_t)
int posix_trace_eventset_empty(trace_event_set_t *)
int posix_trace_eventset_fill(trace_event_set_t *, int)
int posix_trace_eventset_add(trace_event_id_t, trace_event_set_t *)
int posix_trace_eventset_del(trace_event_id_t, trace_event_set_t *)
int posix_trace_eventset_ismember(trace_event_id_t, const trace_event_set_t *, int *)
int posix_trace_get_filter(trace_id_t, trace_event_set_t *)
int posix_trace_set_filter(trace_id_t, const trace_event_set_t *, int)
void posix_trace_event(trace_event_id_t, const void *, size_t)
int posix_trace_getnext_event(trace_id_t, struct posix_trace_event_info *, void *, size_t, size_t *, int *)
int posix_trace_timedgetnext_event(trace_id_t, struct posix_trace_event_info *, void *, size_t, size_t *, int *, const struct timespec *)
int posix_trace_trygetnext_event(trace_id_t, struct posix_trace_event_info *, void *, size_t, size_t *, int *)
int posix_trace_open(int, trace_id_t *)
int posix_trace_rewind(trace_id_t)
int posix_trace_close(trace_id_t)
""".strip().splitlines()  # noqa: E501 -- one prototype a line
_ORDERS = {
    "alone": "#include <trace.h>",
    "unistd first": "#include <unistd.h>\n#include <trace.h>",
    "unistd last": "#include <trace.h>\n#include <unistd.h>\n#include <limits.h>",
    "twice": "#include <trace.h>\n#include <trace.h>",
}
_LANGUAGES = [
    ("gcc", "c", ["-std=c99"]),
    ("gcc", "c", ["-std=c11"]),
    ("gcc", "c", ["-std=c11", "-D_POSIX_C_SOURCE=200809L"]),
    ("gcc", "c", ["-std=gnu17", "-D_GNU_SOURCE"]),
    ("g++", "c++", ["-std=c++17"]),
    ("clang", "c", ["-std=c99"]),
    ("clang++", "c++", ["-std=c++17"]),
]


def _text(order: str) -> str:
    """Return a program that uses every function, macro and limit."""
    lines = [order]
    macros = ("", "_EVENT_FILTER", "_INHERIT", "_LOG")
    conditions = " && ".join(f"_POSIX_TRACE{m} + 0 >= 200809L" for m in macros)
    limits = ("EVENT_NAME", "NAME", "SYS", "USER_EVENT")
    for limit in limits:
        conditions += f" && TRACE_{limit}_MAX >= _POSIX_TRACE_{limit}_MAX"
    lines += [f"#if !({conditions})", '#error "something is missing"', "#endif"]
    lines += ["int main(void)", "{"]
    for number, prototype in enumerate(_PROTOTYPES):
        result, name, arguments = re.fullmatch(r"(\w+) (\w+)(\(.*\))", prototype).groups()  # type: ignore[union-attr]
        lines.append(f"{result} (*p{number}){arguments} = {name}; (void)p{number};")
    return "\n".join([*lines, "return 0;", "}", ""])


def test_the_list_is_complete() -> None:
    assert len(_PROTOTYPES) == 50


@pytest.mark.parametrize("order", _ORDERS)
@pytest.mark.parametrize(("compiler", "language", "flags"), _LANGUAGES, ids="".join)
def test_compiles(
    compiler: str, language: str, flags: list[str], order: str, native_stage: Path
) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    include = f"-I{native_stage / 'include'}"
    done = subprocess.run(
        [compiler, "-x", language, *flags, *_STRICT, include, "-"],
        input=_text(_ORDERS[order]), capture_output=True, encoding="utf-8", check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]


def test_the_library_exports_exactly_the_declared_functions(native_stage: Path) -> None:
    message = run("nm", "-D", "--defined-only", native_stage / "lib" / "libposixtrace.so.0")
    # a symbol with a default version has an @
    exported = {line.split()[-1].partition("@")[0] for line in message.splitlines()}
    wanted = {name for line in _PROTOTYPES for name in re.findall(r"posix_trace_\w+(?=\()", line)}
    assert {name for name in exported if name.startswith("posix_trace_")} == wanted
    # and helpers: sysconf(), and the tracer's way to the streams
    others = {name for name in exported if not name.startswith(("posix_trace_", "ptt_"))}
    assert others <= {"sysconf", "LIBPOSIXTRACE_0"}


@pytest.mark.skipif(shutil.which("pkg-config") is None, reason="pkg-config is not installed")
def test_pkg_config_is_enough(ptt: Ptt, tmp_path: Path) -> None:
    where = ptt("config", "--pkgconfigdir").stdout.strip()
    flags = subprocess.run(
        ["pkg-config", "--cflags", "--libs", "posixtrace"],
        env=clean_environment(PKG_CONFIG_PATH=where),
        capture_output=True, encoding="utf-8", check=True,
    ).stdout.split()  # fmt: skip
    source = tmp_path / "all.c"
    source.write_text(_text(_ORDERS["alone"]), encoding="utf-8")
    subprocess.run(["gcc", source, "-o", tmp_path / "all", *flags], check=True)
    run(tmp_path / "all", env={"LD_LIBRARY_PATH": str(ptt.native / "lib")})
