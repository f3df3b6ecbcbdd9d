"""Where built thread libraries lie, and which of them fits this system."""

from __future__ import annotations

import json
import shutil
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from nptltrace import _paths
from nptltrace._cache import cache_directory
from nptltrace.errors import PttError, UsageError
from nptltrace.nptl.libc import NotGlibc, installed, read_libc

if TYPE_CHECKING:
    from nptltrace.nptl.libc import Libc

__all__ = [
    "Built",
    "cache_dir",
    "choose",
    "clean",
    "find",
    "for_system",
    "place_of",
    "revision",
    "write_facts",
]

_FACTS = "nptl.json"


@cache
def revision() -> str:
    """Return what names this version of the trace points: a hash of all that is put into glibc.

    The tracer and a library must agree on it, since the points are known by number.
    """
    files = sorted(path for path in _paths.glibc_dir().rglob("*") if path.is_file())
    files.append(_paths.include_dir() / "nptl_trace_points.h")
    digest = sha256()
    for path in files:
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:10]


class Built(NamedTuple):
    """A trace-enabled thread library that has been built.

    Attributes:
        prefix: Its directory: `lib/libc.so.6`, `ld/ld-linux-….so`, `nptl.json`.
        libc: What it is.
        facts: What the build wrote down.
    """

    prefix: Path
    libc: Libc
    facts: dict[str, Any]

    @property
    def lib_dir(self) -> Path:
        """What to put in `LD_LIBRARY_PATH`: the directory that holds nothing but libc.so.6."""
        return self.prefix / "lib"

    @property
    def revision(self) -> str:
        """Which revision of the trace points it has."""
        return str(self.facts.get("revision", ""))

    @property
    def runs_with(self) -> str:
        """The package whose `ld.so` loads it: its own, or the one that it stands in for."""
        return str(self.facts.get("runs_with", self.libc.package))

    @property
    def label(self) -> str:
        """As traces name it."""
        return f"{self.libc.package}, trace-enabled, revision {self.revision}"


def cache_dir() -> Path:
    """Return the directory of all builds.

    Raises:
        PttError: The user has no home.
    """
    directory = cache_directory("nptl")
    if directory is None:
        raise PttError("there is no home directory: set XDG_CACHE_HOME")
    return directory


def place_of(libc: Libc) -> Path:
    """Return where the build that goes with a C library belongs."""
    name = libc.distribution_version or libc.version
    return cache_dir() / f"{name}-{revision()}"


def find(prefix: Path) -> Built | None:
    """Return the build in a directory, or None if there is no finished one."""
    try:
        facts = json.loads((prefix / _FACTS).read_text("utf-8"))
        libc = read_libc(prefix / "lib" / "libc.so.6")
    except (OSError, ValueError, NotGlibc):
        return None
    return Built(prefix, libc, facts)


def write_facts(prefix: Path, facts: dict[str, Any]) -> None:
    """Write down what was built; from then on the build counts as finished."""
    text = json.dumps(facts, indent=1) + "\n"
    (prefix / _FACTS).write_text(text, "utf-8")


def for_system() -> Built | None:
    """Return the build that goes with the installed C library, or None."""
    try:
        libc = installed()
    except NotGlibc:
        return None
    built = find(place_of(libc))
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
    """Return the build that `ptt record --nptl` means.

    Args:
        wanted: `stock`, `auto`, or a directory (or its libc.so.6).

    Returns:
        None for the system's own library, also for `auto` where nothing fitting has been built.

    Raises:
        UsageError: The path holds no build, or one that does not fit this system.
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
    """Remove everything that was built or left half built. Return how many bytes that was."""
    base = cache_dir()
    if not base.exists():
        return 0
    size = sum(path.lstat().st_size for path in base.rglob("*"))
    try:
        shutil.rmtree(base)
    except OSError as error:
        raise PttError(f"cannot remove {base}: {error.strerror}") from None
    return size
