"""Java's monitors and locks, as the agent in its virtual machine reports them."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import nptltrace
from nptltrace.ui import protocol
from nptltrace.ui.viewer import Viewer
from tests.support import ROOT
from tests.ui.reference import ask

if TYPE_CHECKING:
    from tests.support import Compiler, Ptt

PROGRAMS = ROOT / "tests" / "programs" / "java"
LONG_NAME = "one that pays for all of the others"


@dataclass(frozen=True, slots=True)
class Run:
    """A program's output, and the report of its trace."""

    stdout: str
    stderr: str
    report: Any
    check: Any
    trace: Path
    arguments: list[str]

    def object(self, kind: str, name: str) -> Any:
        """Return the object of a kind with this name; the number in the name does not matter."""
        rows = [
            row
            for row in self.report["objects"]
            if row["kind"] == kind and row["name"].partition("#")[0] == name
        ]
        assert len(rows) == 1, [(row["kind"], row["name"]) for row in self.report["objects"]]
        return rows[0]


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory, native_stage: Path) -> Path:
    """A directory with the compiled program."""
    if shutil.which("java") is None or shutil.which("javac") is None:
        pytest.skip("there is no JDK")
    if not (native_stage / "lib" / "libpttjava.so").is_file():
        pytest.skip("the agent was built without a JDK")
    place = tmp_path_factory.mktemp("java")
    subprocess.run(["javac", "-d", place, *sorted(PROGRAMS.glob("*.java"))], check=True)
    return place


def _record(ptt: Ptt, classes: Path, trace: Path, *options: str, program: str = "Waits") -> Run:
    done = ptt("record", "-q", *options, "-o", trace, "--", "java", "-cp", classes, program)
    with nptltrace.open(trace) as run:
        process = run.traces[0].info.processes[0]
        return Run(done.stdout, done.stderr, run.report(), run.check(), trace, process.cmdline)


@pytest.fixture(scope="module")
def recorded(classes: Path, tmp_path_factory: pytest.TempPathFactory, native_stage: Path) -> Run:
    """The program, recorded with the agent."""
    from tests.support import Ptt

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NPTLTRACE_NATIVE_DIR", str(native_stage))
        return _record(Ptt(native_stage), classes, tmp_path_factory.mktemp("traces") / "java.ptt")


def test_the_program_behaves_as_untraced(recorded: Run) -> None:
    assert recorded.stdout == "refused\n"
    assert recorded.stderr == ""


def test_a_monitor_of_an_object_is_reported(recorded: Run) -> None:
    account = recorded.object("java-monitor", "Waits$Account")
    assert account["waits"] == 1
    assert account["first_site"] == "Waits.pay (Waits.java:17)"
    [owner] = account["blamed"]
    assert owner["name"] == "main"
    assert owner["wait_caused_ns"] == account["wait_ns"] > 0


def test_a_monitor_of_a_class_is_reported(recorded: Run) -> None:
    row = recorded.object("java-monitor", "Waits.class")
    assert row["waits"] == 1
    assert row["first_site"].startswith("Waits.book ")


def test_monitors_have_no_holds(recorded: Run) -> None:
    monitors = [row for row in recorded.report["objects"] if row["kind"] == "java-monitor"]
    assert all(monitor["holds"] == 0 for monitor in monitors)


def test_object_wait_is_reported_with_its_time_limit(recorded: Run) -> None:
    """A wait that the machine refuses, because the thread lacks the monitor, does not count."""
    found = recorded.object("java-wait", "Waits$Account")
    assert found["waits"] == 0
    assert found["timeout_waits"] == 1
    with nptltrace.open(recorded.trace) as run:
        waits = run.sql("select site, class from named_waits where site like 'Waits.%'")
    assert sorted(tuple(row.values()) for row in waits.to_pylist()) == [
        ("Waits.book (Waits.java:22)", "contended"),
        ("Waits.notified (Waits.java:26)", "timeout"),
        ("Waits.pay (Waits.java:17)", "contended"),
    ]


@pytest.mark.usefixtures("native_in_process")
def test_sleeps_are_idle(recorded: Run) -> None:
    """`Thread.sleep()` waits at a condition of the machine, and ends by its time limit."""
    query = "select distinct class from named_waits where site like 'JavaThread::sleep%'"
    with nptltrace.open(recorded.trace) as run:
        assert run.sql(query).to_pylist() == [{"class": "idle"}]
    kinds = [row["kind"] for row in recorded.report["objects"] if row["timeout_waits"]]
    assert "java-wait" in kinds
    asleep = [row for row in recorded.report["objects"] if "JavaThread::sleep" in row["first_site"]]
    assert asleep
    assert all(row["idle_ns"] and not row["timeout_waits"] for row in asleep)
    viewer = Viewer([recorded.trace], before=recorded.trace)
    viewer.start()
    try:
        viewer.wait_ready()
        addresses = {row["object"] for row in asleep}
        rows = ask(viewer, "rows", by="object", limit=10_000).to_pylist()
        rows = [row["row"] for row in rows if row["object"] in addresses]
        spans = ask(viewer, "spans", by="object", rows=rows, width=100).to_pylist()
    finally:
        viewer.close()
    states = {protocol.STATES[span["state"]] for span in spans}
    assert "idle" in states
    assert "timeout" not in states


def test_threads_have_their_java_names(recorded: Run) -> None:
    names = {thread["name"] for thread in recorded.report["threads"]}
    assert {"main", "bookkeeper", LONG_NAME} <= names


def test_a_correct_program_has_no_findings(recorded: Run) -> None:
    wrong = {"deadlock", "stuck", "lock-order-inversion", "double-lock", "use-after-destroy"}
    assert wrong.isdisjoint(finding["kind"] for finding in recorded.check["findings"])
    [machine] = [gap for gap in recorded.check["uncovered"] if "libjvm" in gap["module"]]
    assert "waits are seen" in machine["why"]


@pytest.mark.usefixtures("native_in_process")
def test_no_java_leaves_the_agent_out(classes: Path, ptt: Ptt, trace_dir: Path) -> None:
    run = _record(ptt, classes, trace_dir, "--no-java")
    assert not [row for row in run.report["objects"] if row["kind"].startswith("java-")]
    assert not [word for word in run.arguments if "agent" in word]
    [machine] = [gap for gap in run.check["uncovered"] if "libjvm" in gap["module"]]
    assert "waits for work" in machine["why"]


@pytest.mark.usefixtures("native_in_process", "classes")
def test_a_machine_that_refuses_agents_still_runs(ptt: Ptt, tmp_path: Path) -> None:
    archive = tmp_path / "classes.jsa"
    options = ("-Xshare:dump", f"-XX:SharedArchiveFile={archive}")
    ptt("record", "-q", "-o", tmp_path / "java.ptt", "--", "java", *options)
    assert archive.is_file()


@pytest.mark.usefixtures("native_in_process")
def test_waits_are_reported_without_stacks(classes: Path, ptt: Ptt, trace_dir: Path) -> None:
    """Without stacks the trace still says who waits and for how long; the program works."""
    run = _record(ptt, classes, trace_dir, "--stacks", "0", "--level", "1")
    assert run.stdout == "refused\n"
    # The machine's own threads may wait for the machine's monitors, too.
    mine = [
        thread for thread in run.report["threads"] if thread["name"] in {LONG_NAME, "bookkeeper"}
    ]
    waited_for = [cause for thread in mine for cause in thread["waited_for"]]
    monitors = [cause for cause in waited_for if cause["kind"] == "java-monitor"]
    assert [monitor["waits"] for monitor in monitors] == [1, 1]
    assert len({monitor["object"] for monitor in monitors}) == 2


@pytest.mark.usefixtures("native_in_process")
def test_parked_threads_are_classified(classes: Path, ptt: Ptt, trace_dir: Path) -> None:
    """A lock has an owner, a semaphore's holder is unknown, and a thread without work is idle."""
    run = _record(ptt, classes, trace_dir, program="Parks")
    till = run.object("java-lock", "java.util.concurrent.locks.ReentrantLock")
    assert till["waits"] >= 1
    assert till["timeout_waits"] == 1
    assert till["first_site"] == "Parks.pay (Parks.java:36)"
    assert [holder["name"] for holder in till["blamed"]] == ["main"]
    permits = run.object("java-sync", "java.util.concurrent.Semaphore")
    assert permits["unknown_waits"] >= 1
    assert permits["waits"] == 0
    jobs = [row for row in run.report["objects"] if row["kind"] == "java-park"]
    assert any("ConditionObject" in job["name"] and job["idle_waits"] for job in jobs)
    assert all(job["waits"] == 0 for job in jobs)
    assert "deadlock" not in {finding["kind"] for finding in run.check["findings"]}


def _wakers(found: Any) -> set[tuple[str, str]]:
    return {(waker["name"], waker["site"]) for waker in found["wakers"]}


@pytest.mark.usefixtures("native_in_process")
def test_parked_threads_have_their_wakers(classes: Path, ptt: Ptt, trace_dir: Path) -> None:
    """The thread that unlocks, gives a permit or brings work, at the line of the program's call."""
    run = _record(ptt, classes, trace_dir, program="Parks")
    till = run.object("java-lock", "java.util.concurrent.locks.ReentrantLock")
    assert _wakers(till) == {("main", "Parks.main (Parks.java:49)")}
    permits = run.object("java-sync", "java.util.concurrent.Semaphore")
    assert _wakers(permits) == {("main", "Parks.main (Parks.java:53)")}
    # the machine may have such a condition itself
    jobs = [row for row in run.report["objects"] if "ConditionObject" in row["name"]]
    assert any(("main", "Parks.main (Parks.java:57)") in _wakers(job) for job in jobs)
    assert run.check["findings"] == []
    assert ptt("verify", trace_dir).returncode == 0


def test_waits_for_a_monitor_have_their_waker(recorded: Run) -> None:
    account = recorded.object("java-monitor", "Waits$Account")
    assert [waker["name"] for waker in account["wakers"]] == ["main"]


@pytest.mark.usefixtures("native_in_process")
def test_machines_started_by_a_script_are_recorded(
    classes: Path, ptt: Ptt, trace_dir: Path
) -> None:
    """`java`, and another JDK command; neither prints anything about the tracer."""
    script = trace_dir.with_name("start")
    source = PROGRAMS / "Waits.java"
    script.write_text(f"#!/bin/sh\njavac -d . {source} && exec java -cp {classes} Parks\n")
    script.chmod(0o755)
    done = ptt("record", "-q", "-o", trace_dir, "--", script, cwd=trace_dir.parent)
    assert (done.stdout, done.stderr) == ("", "")
    with nptltrace.open(trace_dir) as run:
        assert "java-lock" in {row["kind"] for row in run.report()["objects"]}
        [machine] = [gap for gap in run.check()["uncovered"] if "libjvm" in gap["module"]]
    assert "waits are seen" in machine["why"]


# A C program that contains a machine and runs the class named by its argument.
EMBEDS = """
#include <jni.h>
int main(int count, char **word)
{
	JavaVMOption option = {.optionString = word[1]};
	JavaVMInitArgs arguments = {JNI_VERSION_1_8, 1, &option, 0};
	JavaVM *machine;
	JNIEnv *env;
	if (count != 3 || JNI_CreateJavaVM(&machine, (void **)&env, &arguments))
		return 1;
	jclass found = (*env)->FindClass(env, word[2]);
	jmethodID run = (*env)->GetStaticMethodID(env, found, "main", "([Ljava/lang/String;)V");
	(*env)->CallStaticVoidMethod(env, found, run, NULL);
	return (*machine)->DestroyJavaVM(machine) || arguments.nOptions != 1;
}
"""


@pytest.mark.usefixtures("native_in_process")
def test_a_machine_inside_a_c_program_is_recorded(
    classes: Path, compile_c: Compiler, ptt: Ptt, trace_dir: Path
) -> None:
    home = Path(str(shutil.which("javac"))).resolve().parent.parent
    server, include = home / "lib" / "server", home / "include"
    flags = (f"-I{include}", f"-I{include / 'linux'}", f"-L{server}", f"-Wl,-rpath,{server}")
    program = compile_c(EMBEDS, *flags, "-ljvm")
    where = f"-Djava.class.path={classes}"
    ptt("record", "-q", "-o", trace_dir, "--", program, where, "Parks")
    with nptltrace.open(trace_dir) as run:
        assert "java-lock" in {row["kind"] for row in run.report()["objects"]}
        [machine] = [gap for gap in run.check()["uncovered"] if "libjvm" in gap["module"]]
    assert "waits are seen" in machine["why"]
