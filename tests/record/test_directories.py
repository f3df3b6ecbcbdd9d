"""Directories that others write to or send: PTT follows no link, and removes only its own files."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nptltrace._binding.libpttcollect import Stats
from nptltrace._files.directories import Directory
from nptltrace._files.trace_directories import candidate_of, free_name, make
from nptltrace.errors import PttError, UsageError
from nptltrace.recording.files.session import SessionDir, is_killed, left_overs
from nptltrace.recording.recover import Recovered, recover, recover_all, remove

if TYPE_CHECKING:
    from tests.support import Ptt, Recorder

NOBODY = 65534


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only place for session directories."""
    directory = tmp_path / "place"
    directory.mkdir()
    monkeypatch.setattr(SessionDir, "places", staticmethod(lambda: [directory]))
    return directory


@pytest.fixture
def treasure(tmp_path: Path) -> Path:
    """A directory that must stay unchanged, with the names `ptt-view` and `info` in it."""
    directory = tmp_path / "treasure"
    (directory / "deep").mkdir(parents=True)
    for name in ("file", "deep/segment", "session.json", "stream-00000"):
        (directory / name).write_text("mine")
    return directory


def tree(directory: Path) -> dict[str, str]:
    return {
        str(path.relative_to(directory)): path.read_text() if path.is_file() else ""
        for path in directory.rglob("*")
    }


def session(place: Path, trace: Path, *, pid: int = 3_999_999) -> SessionDir:
    """A session, locked by this process; its note names a recorder that does not exist."""
    made = SessionDir.create([place])
    made.note(trace)
    note = json.loads((made.path / "session.json").read_text())
    (made.path / "session.json").write_text(json.dumps(note | {"recorder": pid, "start": 1}))
    return made


def let_go(made: SessionDir) -> None:
    """End the recorder, as far as other processes can see."""
    assert made._held is not None
    made._held.close()


def test_a_session_is_dead_when_nobody_holds_its_lock(place: Path, tmp_path: Path) -> None:
    trace = tmp_path / "t.ptt"
    trace.mkdir()
    made = session(place, trace)
    # The pid says nothing if the recorder is in another namespace.
    assert left_overs() == []
    shutil.rmtree(trace)
    assert left_overs() == []
    assert made.path.is_dir()
    trace.mkdir()
    let_go(made)
    (left,) = left_overs()
    assert left.trace == trace
    assert (left.is_news(), left.is_news()) == (True, False)
    # The session has no trace any more, so PTT removes the session, except files of others.
    (made.path / "letter").write_text("mine")
    (made.path / "maps-3").touch()
    shutil.rmtree(trace)
    assert left_overs() == []
    assert [path.name for path in made.path.iterdir()] == ["letter"]


def test_all_killed_recordings_are_finished_and_no_others(
    place: Path, record: Recorder, tmp_path: Path
) -> None:
    """The second trace is of a later recording in the same directory, so it stays as it is."""
    ours, later = tmp_path / "ours.ptt", record("true")
    shutil.copytree(later, ours)
    made = [session(place, ours), session(place, later)]
    facts = json.loads((ours / "info" / "session.json").read_text())
    facts |= {"state": "running", "session_dir": str(made[0].path)}
    (ours / "info" / "session.json").write_text(json.dumps(facts))
    assert list(recover_all()) == []
    let_go(made[0])
    let_go(made[1])
    results = dict(recover_all())
    assert {trace: getattr(result, "remark", result) for trace, result in results.items()} == {
        ours: f"the buffers of {ours} are gone; what had been written stays",
        later: f"{later} is complete; there is nothing to recover",
    }
    assert not any(isinstance(r, Recovered) and remove(r) for r in results.values())
    states = [json.loads((t / "info" / "session.json").read_text()) for t in (ours, later)]
    assert [facts["state"] for facts in states] == ["recovered", "complete"]
    assert left_overs() == []


def test_an_error_of_one_recording_does_not_stop_the_others(
    place: Path, record: Recorder, tmp_path: Path
) -> None:
    whole, made = record("true"), []
    for name in ("bad.ptt", "good.ptt"):
        trace = tmp_path / name
        shutil.copytree(whole, trace)
        made.append(session(place, trace))
        facts = json.loads((trace / "info" / "session.json").read_text())
        facts |= {"state": "running", "session_dir": str(made[-1].path)}
        (trace / "info" / "session.json").write_text(json.dumps(facts))
        let_go(made[-1])
    (tmp_path / "bad.ptt" / "metadata").unlink()
    (tmp_path / "bad.ptt" / "metadata").mkdir()
    results = dict(recover_all())
    assert isinstance(results[tmp_path / "bad.ptt"], OSError)
    assert isinstance(results[tmp_path / "good.ptt"], Recovered)


def test_a_trace_that_cannot_be_removed(record: Recorder, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(record("true"))
    with pytest.raises(PttError, match="cannot remove all of"):
        remove(Recovered(link, Stats()))


def test_recovery_removes_the_candidate(record: Recorder) -> None:
    trace = record("true")
    make(candidate_of(trace), force=False)[0].close()
    recover(trace)
    assert not candidate_of(trace).exists()


def test_a_recording_names_left_overs_of_its_directory_and_login(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = tmp_path / "t.ptt"
    trace.mkdir()
    let_go(session(place, trace))
    (left,) = left_overs()
    assert left.is_near(tmp_path / "elsewhere")
    monkeypatch.setattr("os.getsid", lambda _: left.login + 1)
    assert not left.is_near(tmp_path / "elsewhere")
    assert left.is_near(tmp_path)


def test_files_in_other_mounts_are_left_alone(place: Path, tmp_path: Path) -> None:
    made = session(place, tmp_path / "gone.ptt")
    note = json.loads((made.path / "session.json").read_text())
    (made.path / "session.json").write_text(json.dumps(note | {"mounts": 1}))
    let_go(made)
    assert left_overs() == []
    assert made.path.is_dir()


def test_a_trace_of_that_name_in_other_mounts_is_another(
    place: Path, record: Recorder, tmp_path: Path
) -> None:
    trace, made = record("true"), []
    for _ in range(2):
        made.append(session(place, trace))
        note = json.loads((made[-1].path / "session.json").read_text())
        (made[-1].path / "session.json").write_text(json.dumps(note | {"mounts": 1}))
        let_go(made[-1])
    facts = json.loads((trace / "info" / "session.json").read_text())
    facts |= {"state": "running", "session_dir": str(made[0].path)}
    (trace / "info" / "session.json").write_text(json.dumps(facts))
    assert [left.path for left in left_overs()] == [made[0].path]
    assert [path for path, _ in recover_all()] == [trace]
    assert [one.path.exists() for one in made] == [False, True]


def test_links_with_names_of_sessions_are_not_followed(place: Path, treasure: Path) -> None:
    before = tree(treasure)
    (treasure / "session.json").unlink()
    for end in ("aaaa", "bbbb"):
        (place / f"ptt-{os.getuid()}-3999999-{end}").symlink_to(treasure)
        assert left_overs() == []
        (treasure / "session.json").write_text("mine")
    assert tree(treasure) == before


def test_a_trace_that_names_a_foreign_session_is_not_killed(place: Path, tmp_path: Path) -> None:
    ours, sent = tmp_path / "ours.ptt", tmp_path / "sent.ptt"
    made = session(place, ours)
    for trace in (ours, sent):
        (trace / "info").mkdir(parents=True)
        text = json.dumps({"state": "running", "session_dir": str(made.path)})
        (trace / "info" / "session.json").write_text(text)
    assert (is_killed(ours), is_killed(sent)) == (False, False)
    let_go(made)
    # repeated: looking must not keep the lock
    assert [is_killed(ours) for _ in range(3)] == [True] * 3
    assert not is_killed(sent)


def test_the_note_of_a_session_is_a_sparse_file_of_a_terabyte(place: Path, tmp_path: Path) -> None:
    made = session(place, tmp_path / "t")
    os.truncate(made.path / "session.json", 1 << 40)
    assert list(left_overs()) == []
    assert made.path.exists()


@pytest.mark.parametrize("named", [".", "..", "../treasure", "{treasure}", "/nowhere/ptt-0-1-a"])
def test_recover_removes_no_directory_that_a_trace_names(
    ptt: Ptt, tmp_path: Path, treasure: Path, named: str
) -> None:
    here = tmp_path / "here"
    (here / "sent.ptt" / "info").mkdir(parents=True)
    for directory in (here, treasure, tmp_path):
        (directory / "segment").write_bytes(b"\0" * 4096)
    text = {"state": "running", "session_dir": named.format(treasure=treasure), "clock": {
        "name": "tsc", "frequency": 1, "unix_ns_at_zero": 0}}  # fmt: skip
    (here / "sent.ptt" / "info" / "session.json").write_text(json.dumps(text))
    before = {path for path in tmp_path.rglob("*") if "sent.ptt" not in str(path)}
    ptt("recover", "sent.ptt", cwd=here, status=None)
    ptt("recover", ".", cwd=here, status=2)
    assert {path for path in tmp_path.rglob("*") if "sent.ptt" not in str(path)} == before


@pytest.mark.parametrize("name", ["info", ".ptt-view", "stream-00000", "metadata", "info/before"])
def test_force_removes_links_and_not_their_targets(
    tmp_path: Path, treasure: Path, name: str
) -> None:
    trace, before = tmp_path / "t.ptt", tree(treasure)
    (trace / name).parent.mkdir(parents=True)
    (trace / name).symlink_to(treasure)
    made, new = make(trace, force=True)
    made.close()
    assert not new
    assert tree(treasure) == before
    assert tree(trace) == {"info": ""}


@pytest.mark.parametrize("name", ["notes.txt", "info/notes.txt", ".ptt-view/deep/x", "stream-1/x"])
def test_force_replaces_only_traces(tmp_path: Path, name: str) -> None:
    trace = tmp_path / "t.ptt"
    (trace / name).parent.mkdir(parents=True)
    (trace / name).write_text("mine")
    (trace / "metadata").touch()
    before = tree(trace)
    with pytest.raises(UsageError, match="contains files that do not belong to a trace, such as "):
        make(trace, force=True)
    assert tree(trace) == before


def test_a_directory_of_another_user_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid():
        pytest.skip("needs root to make such a directory")
    theirs, link = tmp_path / "theirs", tmp_path / "link"
    theirs.mkdir()
    (tmp_path / "mine").mkdir()
    os.chown(theirs, NOBODY, NOBODY)
    link.symlink_to(tmp_path / "mine")
    os.lchown(link, NOBODY, NOBODY)
    for path in (theirs, link):
        with pytest.raises(UsageError, match="another user"):
            make(path, force=True)
    monkeypatch.chdir(tmp_path)
    assert free_name("theirs", force=True) == Path("theirs-2")


def test_only_new_or_plain_files_are_written(tmp_path: Path, treasure: Path) -> None:
    target = treasure / "file"
    with Directory.open(tmp_path) as directory:
        (tmp_path / "symbolic").symlink_to(target)
        (tmp_path / "hard").hardlink_to(target)
        os.mkfifo(tmp_path / "pipe")
        for name in ("symbolic", "hard", "pipe"):
            with pytest.raises(FileExistsError):
                directory.create(name)
            with pytest.raises(OSError):  # noqa: PT011 -- of several kinds
                directory.append(name)
        directory.replace("symbolic", "new")
        directory.replace("hard", "new")
    assert target.read_text() == "mine"
    assert (tmp_path / "hard").read_text() == "new"


def test_taken_names_are_passed_over(
    ptt: Ptt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert free_name("a", force=False) == Path("a")
    Path("a").mkdir()
    Path("a-2").symlink_to("nowhere")
    assert free_name("a", force=False) == Path("a-3")
    assert free_name("a", force=True) == Path("a")
    with pytest.raises(PttError, match=r"no/such/t: there is no directory .*/no/such; make it"):
        make(Path("no/such/t"), force=False)
    done = ptt("record", "-o", "no/such/t", "--", "true", status=2, cwd=tmp_path)
    assert done.stderr.count("\n") == 1
    assert not Path("no").exists()


def test_a_directory_has_one_recording_at_a_time(ptt: Ptt, tmp_path: Path, trace_dir: Path) -> None:
    """A second recording is refused, whatever the command; afterwards it may be replaced."""
    first = subprocess.Popen(
        ptt.command("record", "-q", "-o", trace_dir, "--", "sleep", "100"), env=ptt.environment()
    )
    try:
        other = tmp_path / "other.ptt"
        ptt("record", "-o", other, "--", "true")
        until = time.monotonic() + 60
        while not (trace_dir / "info" / "session.json").exists():
            assert time.monotonic() < until
            time.sleep(0.01)
        before = (trace_dir / "info").stat().st_ino
        for words in (
            ("record", "-o", trace_dir, "--force", "--", "true"),
            ("cut", "--count", "1", "-o", trace_dir, "--force", other),
            ("recover", trace_dir),
        ):
            done = ptt(*words, status=2)
            assert "a recording writes into" in done.stderr or "still at work" in done.stderr
        assert (trace_dir / "info").stat().st_ino == before
    finally:
        first.terminate()
        first.wait()
    ptt("cut", "--count", "1", "-o", trace_dir, "--force", other)
    ptt("record", "-o", trace_dir, "--force", "--", "true")
    assert json.loads((trace_dir / "info" / "session.json").read_text())["command"] == ["true"]
