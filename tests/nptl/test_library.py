"""The trace-enabled thread library: its build, its choice, and its events.

Tests that need the library use the library in the cache of `ptt nptl build`. `./check.sh nptl`
builds it.
"""

from __future__ import annotations

import json
import os
import platform
import struct
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from nptltrace.errors import UsageError
from nptltrace.nptl import source, store
from nptltrace.nptl.libc import Libc, NotGlibc, installed, probe_notes, read_libc
from tests.support import ROOT

if TYPE_CHECKING:
    from tests.support import Compiler, Ptt, Recorder


@pytest.fixture(scope="module")
def library(ptt: Ptt) -> Path:
    """The directory of the library that fits this system and these trace points."""
    found = ptt("nptl", "path", status=None)
    if found.returncode:
        pytest.skip("the trace-enabled thread library has not been built (./check.sh nptl)")
    return Path(found.stdout.strip())


def events_of(ptt: Ptt, trace: Path) -> list[dict[str, Any]]:
    """Return all events of a trace."""
    lines = ptt("view", "--format", "jsonl", trace).stdout.splitlines()
    return [json.loads(line) for line in lines]


# ---- without the library ----------------------------------------------------------------------


def test_the_version_of_the_installed_library_is_read() -> None:
    system = installed()
    version = os.confstr("CS_GNU_LIBC_VERSION")
    assert version == f"glibc {system.version}"
    with pytest.raises(NotGlibc, match="not a GNU C library"):
        read_libc(Path("/bin/true"))


@pytest.mark.parametrize(
    ("installed_one", "wanted"),
    [
        ("2.36-9+deb12u7", "2.36-9+deb12u7"),
        ("2.36-9+deb12u10", "2.36-9+deb12u14"),  # the archive no longer has this revision
        ("2.41-12", "2.41-12"),  # another release is no substitute
    ],
)
def test_a_revision_that_left_the_archive_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, installed_one: str, wanted: str
) -> None:
    archive = tmp_path / "apt-cache"
    rows = [
        f"glibc-source | 2.36-9+deb12u{n} | http://deb.debian.org/ main Packages" for n in (14, 7)
    ]
    archive.write_text("#!/bin/sh\n" + "".join(f"echo '{row}'\n" for row in rows))
    archive.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert source._revision_in_archive(installed_one) == wanted


def test_a_build_of_another_revision_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unpack_package(names: list[str], work: Path, into: Path) -> None:
        assert (names, work) == (["glibc-source=2.36-9+deb12u14"], tmp_path)
        for name in ("glibc/nptl/pthread_create.c", "glibc/version.h"):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).touch()
        (into / "usr/src/glibc").mkdir(parents=True)
        tarball = into / "usr/src/glibc/glibc-2.36.tar.gz"
        subprocess.run(["tar", "-C", tmp_path, "-czf", tarball, "glibc"], check=True)

    monkeypatch.setattr(source, "_revision_in_archive", lambda _: "2.36-9+deb12u14")
    monkeypatch.setattr(source, "_unpack_packages", unpack_package)
    system = Libc(Path("/lib/libc.so.6"), "Debian GLIBC 2.36-9+deb12u10", "2.36")
    found = source.unpack("debian", system, tmp_path, dict(os.environ))
    assert found.package == "Debian GLIBC 2.36-9+deb12u14"
    assert found.stands_in
    assert (found.tree / "version.h").is_file()
    own = source.unpack(str(found.tree), system, tmp_path / "own", dict(os.environ))
    assert own.package == "nptltrace, from source"
    assert not own.stands_in


def test_a_build_of_another_revision_fits_the_installed_revision(tmp_path: Path) -> None:
    system = installed()
    (tmp_path / "lib").mkdir()
    banner = f"GNU C Library (Newer {system.version}-99) stable release version {system.version}."
    (tmp_path / "lib" / "libc.so.6").write_bytes(b"\x7fELF" + banner.encode() + b"\n")
    store.write_facts(tmp_path, {"runs_with": system.package, "revision": store.revision()})
    built = store.choose(str(tmp_path))
    assert built is not None
    assert built.label.startswith(f"Newer {system.version}-99, trace-enabled")
    store.write_facts(tmp_path, {"revision": store.revision()})
    with pytest.raises(UsageError, match="runs only with the ld"):
        store.choose(str(tmp_path))


def test_probe_notes_are_counted(tmp_path: Path) -> None:
    assembly = tmp_path / "probes.s"
    notes = ['.section .note.stapsdt,"?","note"']
    for name in ("mutex_entry", "mutex_entry", "cond_wait"):
        text = f'.asciz "libc"\n.asciz "{name}"\n.asciz "8@%rdi"'
        notes.append(
            f'.balign 4\n.4byte 2f-1f, 4f-3f, 3\n1: .asciz "stapsdt"\n2: .balign 4\n'
            f"3: .8byte 0, 0, 0\n{text}\n4: .balign 4"
        )
    assembly.write_text("\n".join(notes) + "\n")
    library = tmp_path / "probes.so"
    subprocess.run(["gcc", "-shared", "-nostdlib", "-o", library, assembly], check=True)
    assert probe_notes(library) == {"mutex_entry": 2, "cond_wait": 1}


def test_info_names_the_system_and_what_was_built(ptt: Ptt, tmp_path: Path) -> None:
    empty = {"XDG_CACHE_HOME": str(tmp_path)}
    facts = json.loads(ptt("nptl", "info", "--format", "json", env=empty).stdout)
    assert facts["system"]["path"] == str(installed().path)
    assert facts["system"]["probes"] == probe_notes(installed().path).total()
    assert facts["built"] is None
    assert "not built" in ptt("nptl", "info", env=empty).stdout


def test_without_a_build_there_is_no_path_and_nothing_to_clean(ptt: Ptt, tmp_path: Path) -> None:
    empty = {"XDG_CACHE_HOME": str(tmp_path)}
    assert "ptt nptl build" in ptt("nptl", "path", status=2, env=empty).stderr
    assert "nothing" in ptt("nptl", "clean", env=empty).stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["build", "--source", "/nonexistent"], "no such file"),
        (["build", "--source", "."], "not the source of a glibc"),
        (["build", "--jobs", "0"], "1 or more"),
        (["path", "--jobs", "2"], "for ptt nptl build"),
    ],
)
def test_mistakes_are_reported_in_one_line(
    ptt: Ptt, tmp_path: Path, arguments: list[str], message: str
) -> None:
    (tmp_path / "here").mkdir()
    done = ptt(
        "nptl", *arguments, status=2, env={"XDG_CACHE_HOME": str(tmp_path)}, cwd=tmp_path / "here"
    )
    assert message in done.stderr.splitlines()[-1]
    assert done.stderr.splitlines()[-1].startswith("ptt: error: ")


def test_a_path_that_holds_no_library_is_refused(ptt: Ptt, tmp_path: Path) -> None:
    done = ptt("record", "--nptl", tmp_path, "--", "true", status=2, cwd=tmp_path)
    assert "no trace-enabled thread library" in done.stderr


def test_a_library_of_another_version_is_refused(ptt: Ptt, tmp_path: Path) -> None:
    prefix = tmp_path / "other"
    (prefix / "lib").mkdir(parents=True)
    banner = b"GNU C Library (Other GLIBC 2.99-1) stable release version 2.99.\n"
    (prefix / "lib" / "libc.so.6").write_bytes(b"\x7fELF" + banner)
    (prefix / "nptl.json").write_text("{}")
    done = ptt("record", "--nptl", prefix, "--", "true", status=2, cwd=tmp_path)
    assert "2.99" in done.stderr
    assert installed().package in done.stderr


def test_auto_without_a_library_records_on_the_systems_own(ptt: Ptt, tmp_path: Path) -> None:
    trace = tmp_path / "t"
    done = ptt(
        "record", "-o", trace, "--nptl", "auto", "--", "true",
        env={"XDG_CACHE_HOME": str(tmp_path)},
    )  # fmt: skip
    assert "ptt nptl build" in done.stderr
    assert json.loads(ptt("stat", "--format", "json", trace).stdout)["nptl"] == "stock"


# ---- with the library -------------------------------------------------------------------------


def test_a_second_build_returns_at_once(ptt: Ptt, library: Path) -> None:
    done = ptt("nptl", "build")
    assert done.stdout.strip() == str(library)
    assert done.stderr == ""


def test_the_library_differs_from_the_system_only_in_trace_points(library: Path) -> None:
    system, built = installed(), store.find(library)
    assert built is not None
    # the archive may have another revision than the installed revision
    assert (built.runs_with, built.libc.version) == (system.package, system.version)
    assert [path.name for path in (library / "lib").iterdir()] == ["libc.so.6"]
    assert _exports(built.libc.path) == _exports(system.path)


def _exports(path: Path) -> set[str]:
    text = subprocess.run(
        ["nm", "-D", "--defined-only", "--with-symbol-versions", path],
        capture_output=True, encoding="utf-8", check=True,
    ).stdout  # fmt: skip
    return {line.split()[-1] for line in text.splitlines()}


def test_a_program_and_its_children_run_on_the_library(
    ptt: Ptt, record: Recorder, library: Path
) -> None:
    shell = "grep -h /libc.so.6 /proc/self/maps; sh -c 'grep -h /libc.so.6 /proc/self/maps; true'"
    trace = record("sh", "-c", f"{shell} > out", options=("--nptl", "auto"), env={"PWD": None})
    mapped = {line.split()[-1] for line in Path("out").read_text().splitlines()}
    Path("out").unlink()
    assert mapped == {str(library / "lib" / "libc.so.6")}
    found = json.loads(ptt("stat", "--format", "json", trace).stdout)
    assert "trace-enabled" in found["nptl"]
    assert "trace-enabled" in ptt("stat", trace).stdout


def test_the_systems_own_library_is_used_unless_internal_events_are_asked_for(
    ptt: Ptt, record: Recorder, library: Path
) -> None:
    for level, expected in (("2", "stock"), ("4", "trace-enabled")):
        trace = record("true", options=("-l", level))
        assert expected in json.loads(ptt("stat", "--format", "json", trace).stdout)["nptl"]
    assert library.is_dir()


PROGRAM = f"""
#include "{ROOT}/tests/programs/show.h"
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t sem;
static int ready;
static void *other(void *arg)
{{
	pthread_barrier_wait(&barrier);
	await_asleep(getpid()); /* until the first thread waits, as it surely does */
	pthread_mutex_lock(&mutex);
	ready = 1;
	pthread_cond_signal(&cond);
	pthread_mutex_unlock(&mutex);
	sem_post(&sem);
	free(malloc(3000));
	fprintf(stderr, "other\\n");
	return arg;
}}
int main(void)
{{
	pthread_t thread;
	pid_t child;

	pthread_barrier_init(&barrier, NULL, 2);
	sem_init(&sem, 0, 0);
	pthread_create(&thread, NULL, other, NULL);
	pthread_mutex_lock(&mutex);
	pthread_barrier_wait(&barrier);
	while (!ready)
		pthread_cond_wait(&cond, &mutex);
	pthread_mutex_unlock(&mutex);
	sem_wait(&sem);
	pthread_join(thread, NULL);
	child = fork();
	if (child == 0) {{
		printf("child\\n");
		exit(0);
	}}
	waitpid(child, NULL, 0);
	return 0;
}}
"""


@pytest.mark.usefixtures("library")
def test_the_library_reports_internal_events(
    ptt: Ptt, record: Recorder, compile_c: Compiler
) -> None:
    trace = record(compile_c(PROGRAM), options=("-l", "4", "--nptl", "auto"))
    found = {event["event"] for event in events_of(ptt, trace)}
    assert found >= {
        "MUTEX_STATE_REQUIRE", "MUTEX_STATE_TAKEN", "MUTEX_STATE_FREE",
        "BARRIER_LOCK_REQUIRE", "BARRIER_LOCK_TAKEN", "BARRIER_LEFT_DEC", "BARRIER_LOCK_FREE",
        "BARRIER_LEFT_INC", "COND_GROUP_ENTER", "COND_SIGNAL_INC", "COND_STATE_LEAVE",
        "SEM_VALUE_INC", "SEM_VALUE_DEC", "FUTEX_STATE_WAIT", "FUTEX_STATE_WAKE",
        "THREAD_STATE_WAIT", "THREAD_STATE_WAKE", "LLL_TAKEN", "LLL_FREE",
    }  # fmt: skip


@pytest.mark.usefixtures("library")
def test_the_stock_library_reports_no_internal_events(
    ptt: Ptt, record: Recorder, compile_c: Compiler
) -> None:
    trace = record(compile_c(PROGRAM), options=("-l", "4", "--nptl", "stock"))
    found = {event["event"] for event in events_of(ptt, trace)}
    assert not {name for name in found if "_STATE_" in name or name.startswith("LLL_")}


def test_without_a_tracer_it_is_an_ordinary_library(library: Path, compile_c: Compiler) -> None:
    env = {**os.environ, "LD_LIBRARY_PATH": str(library / "lib")}
    done = subprocess.run(
        [compile_c(PROGRAM)], env=env, capture_output=True, encoding="utf-8", check=True
    )
    assert (done.stdout, done.stderr) == ("child\n", "other\n")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="knows how the code is named there")
@pytest.mark.parametrize("routine", ["pthread_mutex_lock", "pthread_mutex_unlock"])
def test_an_untraced_lock_reads_the_level_once(library: Path, routine: str) -> None:
    libc = library / "lib" / "libc.so.6"
    symbols = subprocess.run(
        ["nm", "-D", "-S", libc], capture_output=True, encoding="utf-8", check=True
    ).stdout.splitlines()
    begin, size = next(
        (int(line.split()[0], 16), int(line.split()[1], 16))
        for line in symbols
        if line.split()[-1].partition("@")[0] == routine
    )
    code = subprocess.run(
        ["objdump", "-d", f"--start-address={begin}", f"--stop-address={begin + size}", libc],
        capture_output=True, encoding="utf-8", check=True,
    ).stdout  # fmt: skip
    assert code.count("<__nptl_trace_level_at>") == 1
    assert "lock cmpxchg" in code or "xchg" in code, "the work is done elsewhere"
    assert "<__nptl_trace_call>" not in code


def test_ld_so_and_libc_agree_on_shared_structures(library: Path) -> None:
    loader = next((library / "ld").iterdir())
    assert struct.unpack("<4sB", loader.read_bytes()[:5]) == (b"\x7fELF", 2)
    done = subprocess.run(
        [loader, "--library-path", library / "lib", "/bin/true"], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
