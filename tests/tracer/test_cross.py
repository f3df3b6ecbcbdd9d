"""Other processors: the native parts build, and programs produce the same events as here."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.processors import Processor
from tests.support import PROGRAMS, ROOT
from tests.tracer.counted import Runner

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.tracer.counted import Process

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Built:
    """The native parts, built for a processor.

    Attributes:
        processor: The processor.
        stage: Directory of the native parts.
        handler: The counting handler.
    """

    processor: Processor
    stage: Path
    handler: Path

    def compile(self, source: Path, output: Path, *flags: str) -> Path:
        """Compile a program with unwind tables, which some processors omit by default."""
        gcc = [self.processor.tool("gcc"), "-g", "-O1", "-fasynchronous-unwind-tables", "-pthread"]
        gcc += [f"-I{PROGRAMS}", f"-I{self.stage / 'include'}", *flags]
        subprocess.run([*gcc, source, "-o", output], check=True)
        return output


@pytest.fixture(scope="module", params=["aarch64", "riscv64"])
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The native parts for another processor, built with warnings as errors."""
    processor = Processor(request.param)
    processor.emulator()
    directory = tmp_path_factory.mktemp(processor.machine)
    stage = directory / "stage"
    options = [f"-DPTT_PROCESSOR={processor.machine}", "-DBUILD_TESTING=OFF", "-DPTT_WERROR=ON"]
    options += ["-DPTT_PAGE=OFF", "-DPTT_MAN=OFF"]
    options += [f"-DCMAKE_TOOLCHAIN_FILE={ROOT / 'tools' / 'cross.cmake'}"]
    for arguments in (
        ["-S", f"{ROOT}", "-B", f"{directory}/build", *options],
        ["--build", f"{directory}/build", "--parallel", "2"],
        ["--install", f"{directory}/build", "--prefix", f"{stage}"],
    ):
        done = subprocess.run(
            ["cmake", *arguments], capture_output=True, encoding="utf-8", check=False
        )
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr
    built = Built(processor, stage, directory / "libcount.so")
    built.compile(PROGRAMS / "count_handler.c", built.handler, "-shared", "-fPIC")
    return built


def counts(process: Process) -> dict[str, int]:
    """Count the events of each name, without the C library's own system calls."""
    return {name: n for name, n in process.names().items() if not name.startswith("SYS_")}


@pytest.mark.parametrize("name", ["barrier", "cancel", "once", "rwlock", "sem", "spin"])
def test_other_processors_report_the_same_events(
    built: Built, name: str, traced: Runner, program: Callable[[str], Path], tmp_path: Path
) -> None:
    if (built.processor.machine, name) == ("riscv64", "cancel"):
        pytest.skip("the C library has no unwind tables for C11 waits there")
    emulator = tuple(built.processor.emulator())
    tracer = built.stage / "lib" / "libnptltrace.so"
    (tmp_path / "elsewhere").mkdir()
    elsewhere = Runner(tracer, built.handler, tmp_path / "elsewhere", emulator)
    here = traced(program(name))
    there = elsewhere(built.compile(PROGRAMS / f"{name}.c", tmp_path / name))
    assert (there.status, there.stdout) == (here.status, here.stdout), there.stderr
    assert counts(there.only) == counts(here.only)


def test_a_segment_gives_back_only_its_own_addresses(built: Built, tmp_path: Path) -> None:
    ring = ROOT / "native" / "ring"
    program = built.compile(
        ROOT / "tests" / "native" / "segment_map.c",
        tmp_path / "segment_map",
        "-D_GNU_SOURCE",
        "-Wl,--wrap=mmap,--wrap=munmap",
        f"-I{ring}/mapping",
        f"{ring}/mapping/segment_map.c",
    )
    subprocess.run([*built.processor.emulator(), program], check=True)
