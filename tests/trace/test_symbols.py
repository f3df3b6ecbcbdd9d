"""Names of addresses: from the files that ran, from debug files, from the trace itself."""

from __future__ import annotations

import json
import lzma
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from nptltrace.api import Traceset
from nptltrace.trace.symbols.elf import code
from nptltrace.trace.symbols.elf.demangle import demangle
from nptltrace.trace.symbols.lookup import Symbols
from tests.trace.builder import Builder, Event
from tests.trace.conftest import T0

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Compiler, Ptt, Recorder

BIAS = 0x5555_0000_0000
PROGRAM = """
#include <mutex>
namespace pool {
std::mutex table_lock;
volatile long table;
struct Worker {
    [[gnu::always_inline]] inline void push(long n) {
        std::lock_guard<std::mutex> guard(table_lock);
        table = table + n;
    }
    [[gnu::noinline]] void run(long n) {
        push(n);
    }
};
}
int main() { pool::Worker().run(3); }
"""
LOCKED = "pool::Worker::push (pool.cc:8) inlined into pool::Worker::run"


@dataclass(frozen=True)
class Ran:
    """A program that never ran, and a made-up trace of a run of it."""

    program: Path
    trace: Path
    site: int
    lock: int

    def source(self) -> Traceset:
        return Traceset(self.trace)

    def site_name(self, *directories: Path) -> str:
        return Symbols(self.source(), directories=directories).site_name(0, BIAS + self.site)

    def lock_name(self, *directories: Path) -> str:
        return Symbols(self.source(), directories=directories).object_name(0, BIAS + self.lock)


def output(*command: str | Path) -> str:
    return subprocess.run(command, capture_output=True, encoding="utf-8", check=True).stdout


def compile_program(directory: Path, *flags: str) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "pool.cc").write_text(PROGRAM)
    program = directory / "pool"
    output("g++", "-g", "-O2", "-pthread", "-o", program, directory / "pool.cc", *flags)
    return program


def ran(directory: Path, *flags: str, records: bool = False) -> Ran:
    """Compile the program, and write a trace of its only lock."""
    program = compile_program(directory / "bin", *flags)
    called = [
        line
        for line in output("objdump", "-d", "--no-show-raw-insn", program).splitlines()
        if "call" in line and "pthread_mutex_lock" in line
    ]
    site = int(called[0].split(":")[0], 16) + 5
    symbols = output("nm", "-C", program).splitlines()
    lock = next(int(line.split()[0], 16) for line in symbols if line.endswith("pool::table_lock"))
    notes = output("readelf", "-n", program)
    build_id = notes.partition("Build ID: ")[2].split("\n")[0]
    made = Builder(directory / "run.ptt")
    made.thread(101, [Event(T0, "MUTEX_TAKEN", BIAS + lock, BIAS + site if records else 5)])
    made.processes = [
        {
            "process": {
                "index": 0, "pid": 100, "exe": str(program),
                "start_unix_ns": program.stat().st_mtime_ns + 1,
            }
        },
        {
            "modules": {
                "process": 0,
                "modules": [
                    {
                        "path": str(program), "build_id": build_id, "start": hex(BIAS),
                        "end": hex(BIAS + 0x20000000), "offset": 0, "bias": hex(BIAS),
                    }
                ],
            }
        },
        {"sites": {"process": 0, "sites": {"5": hex(BIAS + site)}}},
    ]  # fmt: skip
    return Ran(program, made.write_records() if records else made.write(), site, lock)


def split_debug(program: Path, debug: Path) -> None:
    """Move debug information into a separate file."""
    debug.parent.mkdir(parents=True, exist_ok=True)
    output("objcopy", "--only-keep-debug", program, debug)
    output("strip", "--strip-all", program)


@pytest.fixture
def pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ran:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("NPTLTRACE_SYMBOLS", raising=False)
    return ran(tmp_path)


def test_names_include_inlined_frames(pool: Ran) -> None:
    found = Symbols(pool.source()).location(0, BIAS + pool.site)
    assert (found.function, found.file, found.line) == ("pool::Worker::run(long)", "pool.cc", 12)
    *library, own = found.inlined
    assert str(own) == "pool::Worker::push (pool.cc:8)"
    assert [frame.function for frame in library][-2:] == [
        "std::mutex::lock()",
        "std::lock_guard<std::mutex>::lock_guard(std::mutex&)",
    ]
    assert all(frame.foreign for frame in library)


def test_a_call_site_has_function_and_line(pool: Ran, ptt: Ptt) -> None:
    # The name skips frames from headers of the library, and shows the user's own line.
    name = pool.site_name()
    assert name.startswith(f"{LOCKED}+0x")
    assert name.endswith(" (pool.cc:12)")
    assert pool.lock_name() == "pool::table_lock"
    line = ptt("view", "--format", "jsonl", pool.trace).stdout
    assert json.loads(line)["site_name"] == name
    assert ptt("view", "--object", "pool::table_lock", pool.trace).stdout.count("\n") == 1
    assert ptt("view", "--site", "push", pool.trace).stdout.count("\n") == 1


@pytest.mark.parametrize("flags", [["-no-pie"], ["-no-pie", "-Wl,-Ttext-segment=0x10000000"]])
def test_programs_at_fixed_addresses_have_names(tmp_path: Path, flags: list[str]) -> None:
    pool = ran(tmp_path, *flags)
    assert pool.site_name().startswith(f"{LOCKED}+0x")
    assert pool.site_name().endswith(" (pool.cc:12)")
    assert pool.lock_name() == "pool::table_lock"


def test_sites_of_classic_records_can_be_chosen(tmp_path: Path, ptt: Ptt) -> None:
    pool = ran(tmp_path, records=True)
    written = pool.trace / "info" / "processes.jsonl"
    lines = written.read_text().splitlines(keepends=True)
    written.write_text("".join(line for line in lines if not line.startswith('{"sites"')))
    assert LOCKED in ptt("view", "--site", "push", pool.trace).stdout
    assert ptt("view", "--site", "elsewhere", pool.trace).stdout == ""


def test_another_build_is_not_used(pool: Ran, ptt: Ptt) -> None:
    compile_program(pool.program.parent, "-DOTHER", "-Wl,--build-id=0x1234")
    assert pool.site_name() == f"pool+{pool.site:#x}"
    done = ptt("view", pool.trace)
    assert "pool is not the file that ran (another build-id)" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_bundled_trace_needs_no_file_of_the_program(pool: Ran, ptt: Ptt) -> None:
    name = pool.site_name()
    ptt("bundle", pool.trace)
    compile_program(pool.program.parent, "-DOTHER", "-Wl,--build-id=0x1234")
    done = ptt("report", "--by", "site", pool.trace)
    assert pool.site_name() == name
    assert done.stderr == ""


def test_without_build_id_the_file_must_be_old(tmp_path: Path, ptt: Ptt) -> None:
    pool = ran(tmp_path, "-Wl,--build-id=none")
    assert pool.site_name().startswith(LOCKED)
    pool.program.touch()
    assert pool.site_name() == f"pool+{pool.site:#x}"
    assert "was changed after it ran and has no build-id" in ptt("view", pool.trace).stderr


@pytest.mark.parametrize(
    "place",
    [
        "{id}",
        "{head}/{tail}.debug",
        ".build-id/{head}/{tail}.debug",
        "pool",
        "deep/below/anything.dbg",
    ],
)
def test_debug_files_are_found_in_directories_of_the_user(
    pool: Ran, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    identity = output("readelf", "-n", pool.program).partition("Build ID: ")[2].split("\n")[0]
    directory = pool.trace.parent / "symbols"
    split_debug(
        pool.program,
        directory / place.format(id=identity, head=identity[:2], tail=identity[2:]),
    )
    assert pool.site_name() == f"pool+{pool.site:#x}"
    assert pool.site_name(directory).startswith(LOCKED)
    pool.program.unlink()
    assert pool.site_name(directory).startswith(LOCKED)
    assert pool.lock_name(directory) == "pool::table_lock"
    monkeypatch.setenv("NPTLTRACE_SYMBOLS", f"/nonexistent:{directory}")
    assert pool.site_name().startswith(LOCKED)


@pytest.mark.parametrize("place", ["pool.debug", ".debug/pool.debug"])
def test_debug_links_are_followed(tmp_path: Path, place: str) -> None:
    for number, flags in enumerate(([], ["-Wl,--build-id=none"])):
        pool = ran(tmp_path / str(number), *flags)
        debug = pool.program.parent / place
        split_debug(pool.program, debug)
        output("objcopy", f"--add-gnu-debuglink={debug}", pool.program)
        if flags:  # the file has not changed since the run
            written = pool.trace / "info" / "processes.jsonl"
            written.write_text(written.read_text().replace("start_unix_ns", "start_unknown"))
        assert pool.site_name().startswith(LOCKED)
        debug.write_bytes(debug.read_bytes() + b"x" if flags else b"")
        assert pool.site_name() == f"pool+{pool.site:#x}"


def test_bundle_makes_a_trace_readable_elsewhere(pool: Ran, ptt: Ptt) -> None:
    name = pool.site_name()
    message = ptt("bundle", pool.trace).stderr
    assert f"put 2 names, 1 with a source line, into {pool.trace}" in message
    pool.program.unlink()
    assert pool.site_name() == name
    assert pool.lock_name() == "pool::table_lock"
    there = pool.trace.parent / "there.ptt"
    shutil.move(pool.trace, there)
    for trace in (there, pool.trace.parent / "cut.ptt"):
        assert name in ptt("view", "--object", "pool::table_lock", trace).stdout
        assert name in ptt("view", "--site", "push", trace).stdout
        if trace == there:
            ptt("cut", "--start", "0", "--count", "1", "-o", trace.parent / "cut.ptt", trace)
    # Names in the trace stay if the files are gone.
    assert "put 2 names" in ptt("bundle", there).stderr


def test_better_files_improve_a_bundle(pool: Ran, ptt: Ptt) -> None:
    debug = pool.trace.parent / "symbols" / "pool.debug"
    debug.parent.mkdir()
    output("objcopy", "--only-keep-debug", pool.program, debug)
    output("strip", "--strip-debug", pool.program)  # functions without lines
    ptt("bundle", pool.trace)
    assert pool.site_name().endswith(" (pool)")
    assert pool.site_name(debug.parent).startswith(LOCKED)


def test_damaged_bundles_are_passed_over(pool: Ran, ptt: Ptt) -> None:
    ptt("bundle", pool.trace)
    kept = pool.trace / "info" / "symbols.jsonl"
    text = kept.read_text()
    pool.program.unlink()
    for line in (
        "{", "[]", "7", '{"kind":"site"}', '{"kind":"site","module":"m","at":"z","frames":[]}',
        '{"kind":"code","module":"m","at":"0x1","offset":0,"frames":[3]}', "\0\xff",
    ):  # fmt: skip
        kept.write_text(f"{line}\n{text}")
        assert pool.site_name().startswith(LOCKED)
        kept.write_text(f"{text[:-20]}\n{line}")
        Symbols(pool.source()).site_name(0, BIAS + pool.site)


def test_damaged_programs_have_no_names(pool: Ran) -> None:
    whole = pool.program.read_bytes()
    for size in (0, 3, 64, 700, len(whole) // 2, len(whole) - 100):
        pool.program.write_bytes(whole[:size])
        pool.site_name()
        pool.lock_name()
    for at in range(0, len(whole), len(whole) // 97):
        pool.program.write_bytes(whole[:at] + b"\xff" * 16 + whole[at + 16 :])
        pool.site_name()
        pool.lock_name()


def test_users_without_a_home_directory_get_names(
    pool: Ran, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(code, "_KEPT_FROM", 0)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr("os.getuid", lambda: 4_000_000)
    assert "pool.cc" in pool.site_name()


def test_large_tables_are_cached(pool: Ran, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code, "_KEPT_FROM", 0)
    name = pool.site_name()
    cache = pool.trace.parent / "cache" / "nptltrace" / "symbols"
    (kept,) = cache.iterdir()
    monkeypatch.setattr("symbolic.debuginfo.Object.make_symcache", None)
    assert pool.site_name() == name
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(pool.trace.parent / "cache"))
    kept.write_bytes(kept.read_bytes()[:50])
    assert pool.site_name() == name


@pytest.mark.parametrize(
    ("mangled", "plain"),
    [
        ("main", "main"),
        ("_ZN4pool6Worker3runEl", "pool::Worker::run(long)"),
        ("_ZN4pool6Worker3runEl.part.0.cold", "pool::Worker::run(long)"),
        ("worker.isra.0", "worker"),
        ("_pthread_cleanup_pop_restore@GLIBC_2.2.5", "_pthread_cleanup_pop_restore"),
        ("_ZN4llvm10TimerGroup3addEv@@LLVM_22.1", "llvm::TimerGroup::add()"),
        ("counter.0", "counter.0"),
        ("_Znonsense", "_Znonsense"),
        ("_ZN1d4deep5inner17h568dc44a5ad99265E", "d::deep::inner"),
        ("_ZN1d4main28_$u7b$$u7b$closure$u7d$$u7d$17h1df512c80b9cabcaE", "d::main::{{closure}}"),
        (
            "_ZN60_$LT$core..option..Option$LT$$RF$str$GT$$u20$as$u20$d..T$GT$2go17h0123456789abcdefE",
            "<core::option::Option<&str> as d::T>::go",
        ),
        ("_RNvC4test4main", "test::main"),
        (
            "_RINvNtCs81re96vpUmQ_1d4deep5innerNCNvB4_4main0EB4_",
            "d::deep::inner::<d::main::{closure#0}>",
        ),
        (
            "_RNvXsd_NtNtNtCsgEmfK2I1SDS_4core3fmt3num3impyNtB9_7Display3fmt",
            "<u64 as core::fmt::Display>::fmt",
        ),
        (
            "_RINvC1a1fFG_RL0_hEuDG_INtC1a1TL0_EEL_E",
            "a::f::<for<'a> fn(&'a u8), dyn for<'a> a::T<'a>>",
        ),
        ("_RINvC1a1fKj1f_Kb1_Kc61_ANtC1a1Sj3_E", "a::f::<31, true, 'a', [a::S; 3]>"),
        ("_RNvC1au8gdel_5qa", "a::gödel"),
        ("_RB_", "_RB_"),
        ("_RNvB_1a", "_RNvB_1a"),
        ("_RNvC99999999999999999999a", "_RNvC99999999999999999999a"),
    ],
)  # fmt: skip
def test_names_are_demangled(mangled: str, plain: str) -> None:
    assert demangle(mangled) == plain


def test_names_that_refer_to_themselves_end() -> None:
    growing = (
        "_RI" + "NvC1a1b" + "TTTTTT" + "".join(f"B{n}_" for n in "23456789abc") * 40 + "EEEEEEE"
    )
    assert demangle(growing) == growing or len(demangle(growing)) < 10**6
    deep = "_RNvMC1a" + "R" * 5000 + "h1f"
    assert demangle(deep) == deep


def test_packed_symbols_of_a_stripped_file_are_read(pool: Ran, tmp_path: Path) -> None:
    debug, small = tmp_path / "pool.debug", tmp_path / "pool.small"
    split_debug(pool.program, debug)
    output("objcopy", "--strip-debug", debug, small)  # the symbol table is left
    packed = tmp_path / "pool.xz"
    packed.write_bytes(lzma.compress(small.read_bytes()))
    debug.unlink()
    assert pool.site_name() == f"pool+{pool.site:#x}"
    output("objcopy", f"--add-section=.gnu_debugdata={packed}", pool.program)
    assert pool.site_name().startswith("pool::Worker::run+0x")
    assert pool.lock_name() == "pool::table_lock"
    packed.write_bytes(b"no archive")
    output("objcopy", f"--update-section=.gnu_debugdata={packed}", pool.program)
    assert pool.site_name() == f"pool+{pool.site:#x}"


def test_variables_with_the_same_name_show_their_file(
    compile_c: Compiler, record: Recorder, ptt: Ptt
) -> None:
    """Variables of different source files differ, also after the files are gone."""
    source = "#include <pthread.h>\nstatic pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;\n"
    body = "(void) { pthread_mutex_lock(&lock); pthread_mutex_unlock(&lock); }\n"
    directory = compile_c.directory
    directory.mkdir(exist_ok=True)
    for name in ("shelf", "desk"):
        (directory / f"{name}.c").write_text(f"{source}void {name}{body}")
    other = [str(directory / f"{name}.c") for name in ("shelf", "desk")]
    main = f"{source}void shelf(void), desk(void); int main{body[:-2]} shelf(); desk(); }}"
    program = compile_c(main, *other)
    trace = record(program)
    for _ in range(2):
        symbols = Symbols(Traceset(trace))
        found = set(symbols.find_object("lock"))
        for name in ("lock (desk.c)", "lock (program.c)", "lock (shelf.c)"):
            (place,) = symbols.find_object(name)
            assert symbols.object_name(*place) == name
            assert place in found
        ptt("bundle", trace)
        program.unlink(missing_ok=True)


@pytest.mark.skipif(not shutil.which("dwz"), reason="needs dwz")
def test_names_in_a_file_that_programs_share_are_read(pool: Ran, tmp_path: Path) -> None:
    """`dwz` moves names into a shared file. Without it, functions without a name are left out."""
    before = pool.site_name()
    other, shared = tmp_path / "other", tmp_path / "shared.debug"
    shutil.copy(pool.program, other)
    output("dwz", "-m", shared, "-r", pool.program, other)
    assert pool.site_name() == before
    moved = tmp_path / "symbols" / "any.debug"
    moved.parent.mkdir()
    shared.rename(moved)
    assert pool.site_name(moved.parent) == before
    found = Symbols(pool.source()).location(0, BIAS + pool.site)
    assert found.function == "pool::Worker::run(long)"
    assert all(frame.function for frame in found.inlined)
    assert not pool.site_name().startswith((" ", "("))


@pytest.mark.parametrize("version", ["4", "5"])
def test_split_debug_information_is_read(version: str, pool: Ran, tmp_path: Path) -> None:
    directory = tmp_path / "split"
    flags = (f"-gdwarf-{version}", "-gsplit-dwarf", "-dumpdir", f"{directory}/", "-gz=zlib")
    split = ran(directory, *flags)
    assert split.site_name() == pool.site_name()
    (left,) = directory.glob("*.dwo")
    moved = tmp_path / "symbols" / left.name
    moved.parent.mkdir()
    left.rename(moved)
    assert split.site_name().endswith(" (pool)")
    assert split.site_name(moved.parent) == pool.site_name()
    if version == "4" and shutil.which("dwp"):
        output("dwp", "-o", f"{split.program}.dwp", moved)
        assert split.site_name() == pool.site_name()
    split.program.with_name("pool.dwp").unlink(missing_ok=True)
    whole = moved.read_bytes()
    for n in range(15):
        damaged = bytearray(whole)
        for at in range(64 + 7 * n, len(whole), 41 + 8 * n):
            damaged[at] = (0, 0x80, 0xFF)[n % 3]
        moved.write_bytes(damaged)
        assert "Worker::run+0x" in split.site_name(moved.parent)
