"""Runtimes of languages whose locks say nothing to a look at a process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nptltrace.catalog.runtimes import ownerless, runtime_of_file

if TYPE_CHECKING:
    from nptltrace.hang.targets.target import Target

__all__ = ["ownerless_locks"]


def ownerless_locks(process: Target) -> tuple[tuple[str, str], ...]:
    """Return the modules of a process with locks whose owners are not known, each with the reason.

    Args:
        process: A process that runs, or a core file: then the program is looked at where it was.
    """
    paths = list(dict.fromkeys(module.path for module in process.modules))
    program = next((path for path in paths if ".so" not in path.rpartition("/")[2]), "")
    file = f"/proc/{process.pid}/exe" if process.files is not None else program
    inside = {program: runtime_of_file(file)} if program else {}
    found = ((path, ownerless(path, inside.get(path, ""))) for path in paths)
    return tuple((path, f"who has {what} is not known") for path, what in found if what)
