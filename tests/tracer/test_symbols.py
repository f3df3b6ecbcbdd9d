"""The tracer exports only names of the C library, and needs no new symbols of it."""

from __future__ import annotations

import re
import subprocess
import tomllib
from typing import TYPE_CHECKING

from tests.support import ROOT, hooked_functions

if TYPE_CHECKING:
    from pathlib import Path

OWN = {
    "__nptl_trace_attach", "__nptl_trace_confined", "__nptl_trace_detail_level",
    "__nptl_trace_dlsym", "__nptl_trace_enabled", "__nptl_trace_lock_entry",
    "__nptl_trace_java", "JLI_Launch", "JNI_CreateJavaVM", "ompt_start_tool",
    "__nptl_trace_point", "__nptl_trace_stack", "__nptl_trace_with_linker_lock",
    "nptl_trace_send_posix_event", "nptl_trace_send_user_event",
}  # fmt: skip
VERSIONS = {"GLIBC_2.2.5", "GLIBC_2.3.2", "GLIBC_2.15", "GLIBC_2.34"}
NEWEST = (2, 34)


# Functions that stand before other libraries' lock functions.
LOCKS = {
    function["name"]
    for lock in tomllib.loads((ROOT / "catalog" / "locks.toml").read_text(encoding="utf-8"))["lock"]
    for function in lock["functions"]
}


def dynamic_symbols(library: Path | str) -> tuple[set[str], set[str]]:
    """Return the defined and the undefined dynamic symbols, versions included."""
    text = subprocess.run(
        ["readelf", "-W", "--dyn-syms", library], capture_output=True, encoding="utf-8", check=True
    ).stdout
    defined: set[str] = set()
    undefined: set[str] = set()
    for line in text.splitlines():
        columns = line.split()
        if len(columns) >= 8 and columns[0].rstrip(":").isdigit():
            (undefined if columns[6] == "UND" else defined).add(columns[7].replace("@@", "@"))
    return defined - VERSIONS, undefined


def libc() -> str:
    """Return the path of the C library."""
    text = subprocess.run(["ldd", "/bin/sh"], capture_output=True, encoding="utf-8", check=True)
    match = re.search(r"(/\S*libc\.so\S*)", text.stdout)
    assert match
    return match[1]


def test_exports_are_the_hooks(native_stage: Path) -> None:
    defined, _ = dynamic_symbols(native_stage / "lib" / "libnptltrace.so")
    names = {symbol.split("@")[0] for symbol in defined}
    # implemented with execve and execvpe
    derived = {"execv", "execvp", "execl", "execlp", "execle"}
    sources = (ROOT / "native" / "tracer").rglob("*.c")
    text = "".join(path.read_text(encoding="utf-8") for path in sources)
    other_names = set(re.findall(r"^ALIAS\((\w+), \w+\);$", text, re.MULTILINE))
    assert len(other_names) >= 18
    assert names == hooked_functions() | derived | other_names | OWN | LOCKS


def test_exports_are_functions_of_the_c_library(native_stage: Path) -> None:
    defined, _ = dynamic_symbols(native_stage / "lib" / "libnptltrace.so")
    theirs, _ = dynamic_symbols(libc())
    names = {symbol.split("@")[0] for symbol in theirs}
    for symbol in defined:
        name = symbol.split("@")[0]
        if name not in OWN | LOCKS:
            assert name in names, f"{name} is not in the C library"
            assert "@" not in symbol or symbol in theirs, f"{symbol} is not in the C library"


def test_functions_with_two_layouts_have_both_versions(native_stage: Path) -> None:
    defined, _ = dynamic_symbols(native_stage / "lib" / "libnptltrace.so")
    theirs, _ = dynamic_symbols(libc())
    if "pthread_cond_wait@GLIBC_2.2.5" not in theirs:
        return  # Linux came to this processor later
    for name in ("init", "destroy", "wait", "timedwait", "signal", "broadcast"):
        versions = ("GLIBC_2.2.5", "GLIBC_2.3.2")
        assert {f"pthread_cond_{name}@{version}" for version in versions} <= defined
    for name in ("posix_spawn", "posix_spawnp"):
        assert {f"{name}@{version}" for version in ("GLIBC_2.2.5", "GLIBC_2.15")} <= defined
    assert {"pthread_kill@GLIBC_2.2.5", "pthread_kill@GLIBC_2.34"} <= defined


def test_needs_no_new_c_library(native_stage: Path) -> None:
    _, undefined = dynamic_symbols(native_stage / "lib" / "libnptltrace.so")
    for symbol in undefined:
        if symbol.startswith("__isoc23_"):
            continue  # headers of newer libraries replace older functions by these
        version = re.search(r"@GLIBC_(\d+)\.(\d+)", symbol)
        if version:
            assert (int(version[1]), int(version[2])) <= NEWEST, symbol
    # functions missing in older libraries are looked up at run time, never linked
    assert not {symbol.split("@")[0] for symbol in undefined} & hooked_functions()


def test_build_without_event_generators_exports_nothing(tmp_path: Path) -> None:
    build = tmp_path / "off"
    commands: tuple[list[str | Path], ...] = (
        ["cmake", "-S", ROOT, "-B", build, "-DENABLE_NPTL_TRACE=OFF", "-DPTT_MAN=OFF"],
        ["cmake", "--build", build, "--target", "nptltrace"],
    )
    for command in commands:
        done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    defined, _ = dynamic_symbols(build / "native" / "tracer" / "libnptltrace.so")
    assert not defined
