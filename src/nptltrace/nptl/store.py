"""The directories of built thread libraries, and the choice of a build that fits this system."""

from __future__ import annotations

import json
import shutil
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from nptltrace import _paths
from nptltrace._files.cache import cache_directory
from nptltrace.errors import PttError, UsageError
from nptltrace.nptl.libc import NotGlibc, installed, read_libc

if TYPE_CHECKING:
    from nptltrace.nptl.libc import Libc

__all__ = [
    "Built", "choose", "clean", "directory_for", "find", "for_system", "revision", "write_facts",
]  # fmt: skip

_FACTS = "nptl.json"


@cache
def revision() -> str:
    """Return the revision of the trace points: a hash of all files that go into glibc.

    Trace points have numbers, so the tracer and a library must have the same revision.
    """
    files = sorted(path for path in _paths.glibc_dir().rglob("*") if path.is_file())
    files.append(_paths.include_dir() / "nptl_trace_points.h")
    digest = sha256()
    for path in files:
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:10]


class Built(NamedTuple):
    """A built trace-enabled thread library.

    Attributes:
        prefix: The directory, with `lib/libc.so.6`, `ld/ld-linux-….so` and `nptl.json`.
        libc: The library.
        facts: The content of `nptl.json`.
    """

    prefix: Path
    libc: Libc
    facts: dict[str, Any]

    @property
    def lib_dir(self) -> Path:
        """The directory for `LD_LIBRARY_PATH`, which contains libc.so.6 alone."""
        return self.prefix / "lib"

    @property
    def revision(self) -> str:
        """The revision of the trace points."""
        return str(self.facts.get("revision", ""))

    @property
    def runs_with(self) -> str:
        """The package with the `ld.so` that loads the library: its own package or the system's."""
        return str(self.facts.get("runs_with", self.libc.package))

    @property
    def label(self) -> str:
        """The name of the library in traces."""
        return f"{self.libc.package}, trace-enabled, revision {self.revision}"


def _cache() -> Path:
    """Return the directory of all builds.

    Raises:
        PttError: The user has no home directory.
    """
    directory = cache_directory("nptl")
    if directory is None:
        raise PttError("there is no home directory: set XDG_CACHE_HOME")
    return directory


def directory_for(libc: Libc) -> Path:
    """Return the directory for the build that fits a C library."""
    name = libc.distribution_version or libc.version
    return _cache() / f"{name}-{revision()}"


def find(prefix: Path) -> Built | None:
    """Return the finished build in a directory, or None."""
    try:
        facts = json.loads((prefix / _FACTS).read_text("utf-8"))
        libc = read_libc(prefix / "lib" / "libc.so.6")
    except (OSError, ValueError, NotGlibc):
        return None
    return Built(prefix, libc, facts)


def write_facts(prefix: Path, facts: dict[str, Any]) -> None:
    """Write the facts about a build. This marks the build as finished."""
    text = json.dumps(facts, indent=1) + "\n"
    (prefix / _FACTS).write_text(text, "utf-8")


def for_system() -> Built | None:
    """Return the build that fits the installed C library, or None."""
    try:
        libc = installed()
    except NotGlibc:
        return None
    built = find(directory_for(libc))
    return built if built is not None and _misfit(built, libc) is None else None


def _misfit(built: Built, system: Libc) -> str | None:
    """Return why a build cannot stand in for the system's C library, or None if it can."""
    if built.runs_with != system.package or built.libc.version != system.version:
        return (
            f"it is for {built.runs_with}, and this system has {system.package}: "
            "a libc runs only with the ld.so of its own version"
        )
    if built.revision != revision():
        return f"it has revision {built.revision} of the trace points, not {revision()}"
    return None


def choose(wanted: str) -> Built | None:
    """Return the build for `ptt record --nptl`.

    Args:
        wanted: `stock`, `auto`, or the path of a build (or of its libc.so.6).

    Returns:
        None for the system's own library: with `stock`, or with `auto` if no build fits.

    Raises:
        UsageError: The path has no build, or the build does not fit this system.
    """
    if wanted == "stock":
        return None
    if wanted == "auto":
        return for_system()
    path = Path(wanted).absolute()
    if path.name == "libc.so.6":
        path = path.parent
    if path.name == "lib":
        path = path.parent
    built = find(path)
    if built is None:
        raise UsageError(f"--nptl {wanted}: no trace-enabled thread library (see ptt nptl build)")
    why = _misfit(built, installed())
    if why is not None:
        raise UsageError(f"--nptl {wanted}: {why}")
    if ":" in str(built.lib_dir) or ";" in str(built.lib_dir):
        raise UsageError(f"--nptl {wanted}: LD_LIBRARY_PATH cannot hold a path with ':' or ';'")
    return built


def clean() -> int:
    """Remove all builds, finished or not, from the cache. Return their size in bytes."""
    base = _cache()
    if not base.exists():
        return 0
    size = sum(path.lstat().st_size for path in base.rglob("*"))
    try:
        shutil.rmtree(base)
    except OSError as error:
        raise PttError(f"cannot remove {base}: {error.strerror}") from None
    return size
