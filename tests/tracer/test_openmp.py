"""OpenMP parallel regions: who waits for whom, with GCC's library and with LLVM's."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Ptt, Recorder

SOURCE = ROOT / "tests" / "programs" / "openmp.c"
# Debian's Clang has the library, but no link name for it.
BUILT = {
    "gcc": f"gcc -fopenmp -g -O1 {SOURCE} -o openmp",
    "clang": f"clang -fopenmp -g -O1 -c {SOURCE} && gcc openmp.o -o openmp -l:libomp.so.5",
}
LIBRARY = {"gcc": "libgomp", "clang": "libomp"}


@pytest.fixture(params=list(BUILT))
def program(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The program, built by one of the compilers."""
    if shutil.which(request.param) is None:
        pytest.skip(f"no {request.param}")
    built = subprocess.run(["sh", "-c", BUILT[request.param]], cwd=tmp_path, check=False)
    if built.returncode:
        pytest.skip(f"{request.param} has no OpenMP here")
    return tmp_path / "openmp"


def _report(ptt: Ptt, trace: Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(ptt("report", "--format", "json", trace).stdout)
    return report


@pytest.mark.parametrize("what", ["contend", "end"])
def test_the_late_thread_at_a_barrier_is_blamed(
    what: str, program: Path, ptt: Ptt, tmp_path: Path
) -> None:
    trace = tmp_path / "run.ptt"
    truth_ns = int(ptt("record", "-o", trace, "--", program, what).stdout)
    report = _report(ptt, trace)
    (barrier,) = [row for row in report["objects"] if row["kind"] == "omp-barrier"]
    assert barrier["wait_max_ns"] == pytest.approx(truth_ns, rel=0.1)
    late = max(barrier["blamed"], key=lambda holder: holder["wait_caused_ns"])
    # the late thread waits for no other thread
    waited = {thread["tid"]: thread["wait_ns"] for thread in report["threads"]}
    assert waited[late["tid"]] == min(waited.values())
    assert late["wait_caused_ns"] > barrier["wait_ns"] / 2
    assert "openmp.c" in late["site"]
    assert report["unknown_waits"] == 0


def test_threads_without_work_are_idle(program: Path, record: Recorder, ptt: Ptt) -> None:
    # LLVM's idle threads then wait on conditions at once
    report = _report(ptt, record(program, "pool", env={"KMP_BLOCKTIME": "0"}))
    (pool,) = [row for row in report["objects"] if row["kind"] == "team-pool"]
    assert pool["waits"] == 0
    # two threads between the regions, and after the last region until the end
    assert pool["idle_ns"] > 4 * 90_000_000
    (waker,) = pool["wakers"]
    assert waker["count"] == 2
    # the library's internal waits are not recorded as well
    for thread in report["threads"]:
        assert thread["idle_ns"] <= 1.1 * (thread["end_ns"] - thread["start_ns"])


def test_regions_keep_orders_apart(program: Path, record: Recorder, ptt: Ptt) -> None:
    trace = record(program, "correct")
    check = json.loads(ptt("check", "--suspects", "--format", "json", trace).stdout)
    assert check["findings"] == []
    ptt("verify", trace)


@pytest.mark.parametrize("level", ["2", "barrier=0"])
def test_correct_programs_have_no_findings(
    level: str, program: Path, record: Recorder, ptt: Ptt
) -> None:
    trace = record(program, "all", options=("--level", level))
    assert json.loads(ptt("check", "--format", "json", trace).stdout)["findings"] == []
    ptt("verify", trace)


def test_uncovered_waits_are_named(program: Path, record: Recorder, ptt: Ptt) -> None:
    text = " ".join(ptt("check", record(program, "all")).stdout.split())
    assert "nothing found in what is covered not covered:" in text
    assert "waits for tasks" in text


OWN_TOOL = """
#include <stdio.h>
void *ompt_start_tool(unsigned int version, const char *runtime)
{
	(void)version; (void)runtime;
	puts("own tool");
	return NULL;
}
"""


def test_the_users_own_tool_comes_first(tmp_path: Path, program: Path, ptt: Ptt) -> None:
    source, tool = tmp_path / "tool.c", tmp_path / "tool.so"
    source.write_text(OWN_TOOL)
    subprocess.run(["gcc", "-shared", "-fPIC", source, "-o", tool], check=True)
    users = {"OMP_TOOL_LIBRARIES": str(tool)}
    plain = subprocess.run([program, "pool"], env=users, check=True, capture_output=True, text=True)
    traced = ptt("record", "-o", tmp_path / "run.ptt", "--", program, "pool", env=users)
    assert traced.stdout == plain.stdout
