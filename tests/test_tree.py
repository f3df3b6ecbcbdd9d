"""The tree: folders are small, and the folders of a part depend on one another in one direction."""

from __future__ import annotations

import re
from collections import defaultdict
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

MODULES = 16
# Readers find these files by the names of commands, so sub-folders would not help.
FLAT = {"src/nptltrace/cli/commands"}
# These files use all folders of their part. Files that all folders use stand beside them.
ON_TOP = {"native/tracer/start.c", "web/src/main.ts"}


def sources(top: str, *suffixes: str) -> list[Path]:
    return [path for path in (ROOT / top).rglob("*") if path.suffix in suffixes]


@pytest.mark.parametrize("top", ["native", "src", "web/src"])
def test_folders_are_small(top: str) -> None:
    folders: dict[str, set[str]] = defaultdict(set)
    for path in sources(top, ".c", ".h", ".py", ".ts"):
        if path.stem != "__init__":
            folders[str(path.parent.relative_to(ROOT))].add(path.stem)
    large = {folder: len(stems) for folder, stems in folders.items() if len(stems) > MODULES}
    assert set(large) <= FLAT, large


def included(path: Path, headers: dict[str, list[Path]]) -> Iterator[Path]:
    """Yield the headers of the tree that a file includes."""
    for name in re.findall(r'^\s*#include "([^"]+)"', path.read_text(), re.MULTILINE):
        beside = path.parent / name
        if beside.exists():
            yield beside.resolve()
            continue
        part = ROOT / "/".join(path.relative_to(ROOT).parts[:2])
        found = [header for header in headers[Path(name).name] if str(header).endswith("/" + name)]
        yield from [header for header in found if part in header.parents] or found[:1]


def imported(path: Path) -> Iterator[Path]:
    """Yield the modules of the page that a module imports."""
    for name in re.findall(r'from "(\.[^"]+)"', path.read_text(encoding="utf-8")):
        yield (path.parent / f"{name}.ts").resolve()


def test_folders_depend_in_one_direction() -> None:
    arrows: dict[Path, set[Path]] = defaultdict(set)
    headers: dict[str, list[Path]] = defaultdict(list)
    for path in sources("native", ".h"):
        headers[path.name].append(path)
    uses = [(path, included(path, headers)) for path in sources("native", ".c", ".h")]
    uses += [(path, imported(path)) for path in sources("web/src", ".ts")]
    for path, others in uses:
        if str(path.relative_to(ROOT)) not in ON_TOP:
            arrows[path.parent] |= {other.parent for other in others} - {path.parent}
    try:
        TopologicalSorter(arrows).prepare()
    except CycleError as error:
        circle = [str(folder.relative_to(ROOT)) for folder in error.args[1]]
        pytest.fail(f"these folders depend on one another: {' ← '.join(circle)}")


def allowed_uses() -> dict[str, set[str]]:
    """Map each native part to the parts that CONTRIBUTING.md lets it use."""
    may_use = {"include": set[str]()}
    for line in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").splitlines():
        row = re.fullmatch(r"\| `native/(\w+)/` \|.*\| (.*) \|", line)
        if row is not None:
            may_use[row[1]] = {"include", *re.findall(r"`(\w+)`", row[2])} - {row[1]}
    for part in TopologicalSorter(may_use).static_order():
        may_use[part] |= {below for used in may_use[part] for below in may_use[used]}
    return may_use


def test_native_parts_use_what_contributing_allows() -> None:
    may_use = allowed_uses()
    headers: dict[str, list[Path]] = defaultdict(list)
    for path in sources("native", ".h"):
        headers[path.name].append(path)
    for path in sources("native", ".c", ".h"):
        part = path.relative_to(ROOT / "native").parts[0]
        used = {item.relative_to(ROOT / "native").parts[0] for item in included(path, headers)}
        assert part == "binding" or used <= may_use[part] | {part}, path  # it has all layouts
