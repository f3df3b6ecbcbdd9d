"""Exports by call stack: their totals equal the totals of the tables, and they split by caller."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

import nptltrace
from nptltrace.errors import UsageError
from tests.export.pprof_reader import read_profile

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.export.pprof_reader import Profile
    from tests.support import Ptt

CALLERS = {"read_row", "write_row", "flush_log", "take_snapshot", "drop_table"}
SHOWN = ("waits", "holders", "holds", "idle")
FORMATS = ("folded", "pprof", "speedscope", "firefox")
NS_PER_MS = 1e6


@pytest.fixture(scope="module")
def trace(recorded: Callable[[str], Path]) -> Path:
    return recorded("five_callers")


@pytest.fixture
def export(tmp_path: Path) -> Callable[..., Path]:
    """Write an export: `export(trace, "folded", show="holds")`."""

    def write(trace: Path, name: str, **options: Any) -> Path:
        out = tmp_path / f"out.{name}{len(list(tmp_path.iterdir()))}"
        return nptltrace.open(trace).export(name, out, **options)

    return write


def expected(trace: Path, show: str) -> tuple[int, int]:
    """Return the count and the length from SQL."""
    query = {
        "waits": "select count(*), sum(dur_ns) from waits where class = 'contended'",
        "holders": "select count(*), sum(held_ns) from waits where class = 'contended'",
        "holds": "select count(*), sum(dur_ns) from holds",
        "idle": "select count(*), sum(dur_ns) from waits where class = 'idle'",
    }[show]
    row = next(iter(nptltrace.open(trace).sql(query).to_pylist())).values()
    count, ns = (int(value or 0) for value in row)
    return count, ns


# ---- readers ----


def folded(path: Path) -> Counter[tuple[str, ...]]:
    """Return the time of each stack, the outermost function first."""
    found: Counter[tuple[str, ...]] = Counter()
    for line in path.read_text().splitlines():
        stack, ns = line.rsplit(" ", 1)
        found[tuple(stack.split(";"))] += int(ns)
    return found


def pprof(path: Path) -> Profile:
    return read_profile(gzip.decompress(path.read_bytes()))


def speedscope(path: Path) -> dict[str, Any]:
    """Return a document after a check of the rules of the page."""
    document: dict[str, Any] = json.loads(path.read_text())
    assert document["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = document["shared"]["frames"]
    assert all(frame["name"] for frame in frames)
    for profile in document["profiles"]:
        assert profile["type"] == "sampled"
        assert profile["unit"] == "nanoseconds"
        assert len(profile["samples"]) == len(profile["weights"])
        assert profile["endValue"] - profile["startValue"] == sum(profile["weights"])
        assert {n for sample in profile["samples"] for n in sample} <= set(range(len(frames)))
    return document


def firefox_stacks(thread: dict[str, Any]) -> list[list[str]]:
    """Return the functions of each sample, the outermost first."""
    strings, stacks = thread["stringArray"], thread["stackTable"]
    frames, functions = thread["frameTable"], thread["funcTable"]

    def names(stack: int | None) -> list[str]:
        found = []
        while stack is not None:
            found.append(strings[functions["name"][frames["func"][stacks["frame"][stack]]]])
            stack = stacks["prefix"][stack]
        return found[::-1]

    return [names(stack) for stack in thread["samples"]["stack"]]


def firefox(path: Path) -> dict[str, Any]:
    """Return a profile after a check that its tables fit together."""
    profile: dict[str, Any] = json.loads(path.read_text())
    for thread in profile["threads"]:
        for name in ("samples", "markers", "stackTable", "frameTable", "funcTable",
                     "resourceTable", "nativeSymbols"):  # fmt: skip
            table = thread[name]
            columns = [column for column in table.values() if isinstance(column, list)]
            assert all(len(column) == table["length"] for column in columns), name
        times = thread["samples"]["time"]
        assert times == sorted(times)
        prefixes = thread["stackTable"]["prefix"]
        assert all(prefix is None or prefix < n for n, prefix in enumerate(prefixes))
        assert set(thread["resourceTable"]["lib"]) <= set(range(len(profile["libs"])))
        for marker in thread["markers"]["data"]:
            assert 0 <= marker["cause"]["stack"] < len(prefixes)
    return profile


# ---- tests ----


class TestTotals:
    """For each kind of rows, the widths add up to the total of the table."""

    @pytest.mark.parametrize("show", SHOWN)
    def test_folded(self, export: Callable[..., Path], trace: Path, show: str) -> None:
        assert (
            sum(folded(export(trace, "folded", show=show)).values()) == (expected(trace, show)[1])
        )

    @pytest.mark.parametrize("show", SHOWN)
    def test_pprof(self, export: Callable[..., Path], trace: Path, show: str) -> None:
        profile = pprof(export(trace, "pprof", show=show))
        names = ["holds", "held"] if show == "holds" else ["contentions", "delay"]
        assert profile.sample_types == [(names[0], "count"), (names[1], "nanoseconds")]
        sums = tuple(sum(sample.values[n] for sample in profile.samples) for n in (0, 1))
        assert sums == expected(trace, show)

    @pytest.mark.parametrize("show", SHOWN)
    def test_speedscope(self, export: Callable[..., Path], trace: Path, show: str) -> None:
        first, *others = speedscope(export(trace, "speedscope", show=show))["profiles"]
        assert first["endValue"] == expected(trace, show)[1]
        if others:
            assert sum(profile["endValue"] for profile in others) == first["endValue"]

    @pytest.mark.parametrize("show", SHOWN)
    def test_firefox(self, export: Callable[..., Path], trace: Path, show: str) -> None:
        profile = firefox(export(trace, "firefox", show=show))
        samples = [thread["samples"] for thread in profile["threads"]]
        count, ns = expected(trace, show)
        assert sum(sample["length"] for sample in samples) == count
        weight = sum(sum(sample["weight"]) for sample in samples)
        assert weight * NS_PER_MS == pytest.approx(ns, abs=count + 1)


class TestCallers:
    """A wrapper with five callers splits into the five callers."""

    def test_folded(self, export: Callable[..., Path], trace: Path) -> None:
        lines = folded(export(trace, "folded"))
        assert {stack[-2] for stack in lines if stack[-1] == "db_lock"} == CALLERS

    def test_pprof(self, export: Callable[..., Path], trace: Path) -> None:
        profile = pprof(export(trace, "pprof"))
        found = {sample.functions[1] for sample in profile.samples
                 if sample.functions[0] == "db_lock"}  # fmt: skip
        assert found == CALLERS
        assert "mutex g_lock" in {sample.labels["object"] for sample in profile.samples}
        (program,) = (item for item in profile.mappings if item.file.endswith("/five_callers"))
        modules = nptltrace.open(trace).table("modules").to_pylist()
        assert program.build_id == next(
            row["build_id"] for row in modules if row["path"] == program.file
        )
        for location in profile.locations.values():
            mapping = profile.mapping_of[location.mapping]
            assert mapping.start <= location.address < mapping.end

    def test_speedscope(self, export: Callable[..., Path], trace: Path) -> None:
        document = speedscope(export(trace, "speedscope"))
        names = [frame["name"] for frame in document["shared"]["frames"]]
        samples = document["profiles"][0]["samples"]
        assert {
            names[sample[-2]] for sample in samples if names[sample[-1]] == "db_lock"
        } == CALLERS

    def test_firefox(self, export: Callable[..., Path], trace: Path) -> None:
        profile = firefox(export(trace, "firefox"))
        stacks = [stack for thread in profile["threads"] for stack in firefox_stacks(thread)]
        assert {stack[-2] for stack in stacks if stack[-1] == "db_lock"} == CALLERS
        objects = {marker["object"] for thread in profile["threads"]
                   for marker in thread["markers"]["data"]}  # fmt: skip
        assert "mutex g_lock" in objects

    @pytest.mark.parametrize("name", ["folded", "speedscope"])
    def test_a_skipped_wrapper_is_left_out(self, ptt: Ptt, trace: Path, name: str) -> None:
        options = ("--format", name, "-o", "-", "--skip", "nothing_like_it,db_*")
        text = ptt("export", *options, trace).stdout
        assert "db_lock" not in text
        assert all(caller in text for caller in CALLERS)


class TestScope:
    """The options for a part work as in other commands."""

    @pytest.mark.parametrize("name", FORMATS)
    def test_an_object_without_waits_is_empty(
        self, export: Callable[..., Path], trace: Path, name: str
    ) -> None:
        path = export(trace, name, object="ready", show="holds")
        if name == "folded":
            assert not path.read_text()
        elif name == "pprof":
            assert not pprof(path).samples
        elif name == "speedscope":
            assert not speedscope(path)["profiles"][0]["samples"]
        else:
            assert not firefox(path)["threads"]

    def test_two_halves_add_up_to_the_whole(self, export: Callable[..., Path], trace: Path) -> None:
        half = nptltrace.open(trace).end // 2
        parts = [folded(export(trace, "folded", end_ns=half)),
                 folded(export(trace, "folded", start_ns=half))]  # fmt: skip
        assert sum(sum(part.values()) for part in parts) == expected(trace, "waits")[1]

    def test_other_formats_refuse_show(self, ptt: Ptt, trace: Path, tmp_path: Path) -> None:
        out = tmp_path / "out"
        done = ptt("export", "--format", "csv", "--show", "holds", "-o", out, trace, status=2)
        assert "--show means nothing to csv" in done.stderr
        with pytest.raises(UsageError, match="nothing to show is called 'all'"):
            nptltrace.open(trace).export("folded", out, show="all")


class TestOtherReaders:
    """Other programs read PTT's files in these formats."""

    @pytest.mark.skipif(shutil.which("go") is None, reason="Go is not installed")
    def test_go_tool_pprof_reads_the_export(self, export: Callable[..., Path], trace: Path) -> None:
        path = export(trace, "pprof")
        command = [
            "go",
            "tool",
            "pprof",
            "-symbolize=none",
            "-unit=ns",
            "-top",
            "-nodefraction=0",
            "-nodecount=1000",
            "-sample_index=delay",
        ]
        done = subprocess.run(
            [*command, str(path)], capture_output=True, encoding="utf-8", check=True, timeout=120
        )
        assert f"{expected(trace, 'waits')[1]}ns total" in done.stdout.replace("of ", "")
        assert all(caller in done.stdout for caller in CALLERS)
