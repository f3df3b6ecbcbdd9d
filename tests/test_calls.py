"""Calls between native objects run one way: no circle, no call from a lower library upward."""

from __future__ import annotations

import ctypes
import json
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import ROOT
from tests.test_tree import allowed_uses

if TYPE_CHECKING:
    from collections.abc import Mapping

# The symbols that a user, the first name, needs of an owner, the second name.
Calls = dict[tuple[str, str], set[str]]


def calls_between(objects: Mapping[Path, str]) -> Calls:
    """Return the symbols that each object needs of each other object.

    The tracer interposes functions of the C library. A call of such a function is a call of the
    tracer only within the tracer.

    Args:
        objects: The name of each object file, such as `tracer/process/fork`.
    """
    libc = ctypes.CDLL("libc.so.6")
    owners, users = defaultdict[str, set[str]](set), set[tuple[str, str]]()
    command = ["nm", "-A", "-P", *map(str, objects)]
    listed = subprocess.run(command, capture_output=True, encoding="utf-8", check=True).stdout
    for line in listed.splitlines():
        path, symbol, kind, *_ = line.replace(": ", " ", 1).split()
        if kind in "Uwv":
            users.add((objects[Path(path)], symbol))
        elif kind.isupper():
            owners[symbol].add(objects[Path(path)])
    calls: Calls = defaultdict(set)
    for user, symbol in users:
        own = {owner for owner in owners[symbol] if part(owner) == part(user)}
        for owner in (own or owners[symbol]) - {user}:
            if own or not hasattr(libc, symbol):
                calls[user, owner].add(symbol)
    return calls


def part(name: str) -> str:
    """Return the native part that an object belongs to."""
    return name.partition("/")[0]


def folder(name: str) -> str:
    """Return the folder that an object stands in."""
    return name.rpartition("/")[0]


def circles(arrows: set[tuple[str, str]]) -> set[str]:
    """Return each largest set of names that reach one another: `tracer: children fork`."""
    uses = defaultdict[str, set[str]](set)
    for user, owner in arrows:
        uses[user].add(owner)
    reached = {}
    for name in list(uses):
        reached[name], new = set[str](), uses[name]
        while new:
            reached[name] |= new
            new = {owner for user in new for owner in uses.get(user, ())} - reached[name]
    return {
        f"{part(name)}: "
        + " ".join(sorted(Path(owner).name for owner in below if name in reached.get(owner, ())))
        for name, below in reached.items()
        if name in below
    }


def folder_circles(calls: Calls) -> set[str]:
    """Return the circles of folders of a part. A folder and its sub-folders are told apart.

    Args:
        calls: The symbols that each object needs of each other object.
    """
    pairs = {(folder(user), folder(owner)) for user, owner in calls if part(user) == part(owner)}
    return circles({(a, b) for a, b in pairs if a != b})


def upward(calls: Calls, may_use: Mapping[str, set[str]]) -> set[str]:
    """Return the calls from a library to a library that may use it."""
    return {
        f"{user} -> {owner}: {symbol}"
        for (user, owner), symbols in calls.items()
        if part(user) in may_use.get(part(owner), ())
        for symbol in symbols
    }


@pytest.fixture(scope="module")
def native_calls(native_stage: Path) -> Calls:
    listed = native_stage.parent / "compile_commands.json"
    if not listed.exists():
        pytest.skip(f"{native_stage} is no stage of a build, so there are no objects")
    objects = {}
    for unit in json.loads(listed.read_text(encoding="utf-8")):
        source, words = Path(unit["file"]), unit["command"].split()
        if source.is_relative_to(ROOT / "native"):
            path = Path(unit["directory"], words[words.index("-o") + 1])
            objects[path] = str(source.relative_to(ROOT / "native").with_suffix(""))
    return calls_between(objects)


def test_native_objects_call_one_another_in_one_direction(native_calls: Calls) -> None:
    assert len(native_calls) > 100
    assert circles(set(native_calls)) == set()


def test_native_folders_call_one_another_in_one_direction(native_calls: Calls) -> None:
    assert folder_circles(native_calls) == set()


def test_no_native_library_calls_up(native_calls: Calls) -> None:
    assert upward(native_calls, allowed_uses()) == set()


def test_the_check_finds_circles_and_calls_up(tmp_path: Path) -> None:
    texts = {
        "low/one/first": "void third(void); void first(void) { third(); }",
        "low/one/second": "void first(void); void second(void) { first(); }",
        "low/two/third": "void top(void) __attribute__((weak)); void third(void) { top(); }",
        "low/two/fourth": "void second(void); void fourth(void) { second(); }",
        "low/below": "void fourth(void); void below(void) { fourth(); }",
        "low/two/fifth": "void below(void); void fifth(void) { below(); }",
        "high/top": "void again(void); void top(void) { again(); }",
        "high/again": "void top(void); void again(void) { top(); }",
    }
    objects = {}
    for name, text in texts.items():
        path = tmp_path / f"{name.replace('/', '-')}.o"
        command = ["gcc", "-x", "c", "-", "-c", "-o", str(path)]
        subprocess.run(command, input=text, encoding="utf-8", check=True)
        objects[path] = name
    calls = calls_between(objects)
    assert circles(set(calls)) == {"high: again top"}
    assert folder_circles(calls) == {"low: low one two"}
    assert upward(calls, {"low": set(), "high": {"low"}}) == {"low/two/third -> high/top: top"}
