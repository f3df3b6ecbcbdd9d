"""Runs the conformance program, one routine after the other, and reads the results."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.support import clean_environment

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

__all__ = ["Came", "differences", "routines", "run_all"]

# One shell starts all routines: a recording costs more than the programs do.
_BATCH = """\
#!/bin/sh
for routine in {routines}; do
	{program} "$routine" >"$routine.out" 2>"$routine.err" </dev/null
	echo $? >"$routine.status"
done
"""


@dataclass(frozen=True, slots=True)
class Came:
    """Result of one routine.

    Attributes:
        out: Lines, one per case.
        err: Standard error.
        status: The exit status.
    """

    out: tuple[str, ...]
    err: str
    status: int


def routines(program: Path) -> list[str]:
    """Return the routines that the program knows, sorted."""
    done = subprocess.run(
        [program], env=clean_environment(), capture_output=True, encoding="utf-8", check=True
    )
    return sorted(done.stdout.split())


def run_all(
    program: Path,
    names: Iterable[str],
    place: Path,
    *,
    before: Sequence[str] = (),
    env: Mapping[str, str | None] | None = None,
) -> tuple[dict[str, Came], str]:
    """Run all routines in a fresh directory.

    Args:
        program: The conformance program.
        names: The routines.
        place: The directory to create.
        before: Words before the batch's command, such as the recorder's command.
        env: Variables to set.

    Returns:
        The result of each routine, and the standard error of the command in `before`.
    """
    place.mkdir()
    names = list(names)
    batch = place / "batch"
    batch.write_text(_BATCH.format(routines=" ".join(names), program=program), encoding="utf-8")
    batch.chmod(0o755)
    done = subprocess.run(
        [*before, "/bin/sh", batch],
        cwd=place,
        env=clean_environment(**(env or {})),
        capture_output=True,
        encoding="utf-8",
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return {name: _read(place, name) for name in names}, done.stderr


def _read(place: Path, name: str) -> Came:
    out, err, status = (
        (place / f"{name}.{kind}").read_text(encoding="utf-8", errors="replace")
        for kind in ("out", "err", "status")
    )
    return Came(tuple(out.splitlines()), err, int(status))


def differences(plain: Mapping[str, Came], traced: Mapping[str, Came]) -> list[str]:
    """Return a line for each difference of the traced run."""
    lines: list[str] = []
    for name, was in plain.items():
        now = traced[name]
        if now.status != was.status:
            lines.append(f"{name}: exit status {now.status}, not {was.status}")
        if now.err != was.err:
            lines.append(f"{name}: said {now.err!r}, not {was.err!r}")
        lines += [f"- {line}" for line in was.out if line not in now.out]
        lines += [f"+ {line}" for line in now.out if line not in was.out]
        if now.out != was.out and sorted(now.out) == sorted(was.out):
            lines.append(f"{name}: another order")
    return lines
