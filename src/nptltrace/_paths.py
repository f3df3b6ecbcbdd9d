"""Where the native files are: libraries, handlers, headers, pkg-config files."""

from __future__ import annotations

import os
import stat
from functools import cache
from pathlib import Path

from nptltrace import _buildinfo
from nptltrace.errors import NativeFilesMissing, PttError

__all__ = [
    "glibc_dir",
    "handlers",
    "handlers_dir",
    "include_dir",
    "lib_dir",
    "library",
    "man_dir",
    "native_dir",
    "page_dir",
    "pkgconfig_dir",
    "preload_list",
    "preload_path",
    "private_library",
]

PRELOAD = "libnptltrace.so"
# The dynamic linker splits LD_PRELOAD at these and knows no way to quote them.
_SEPARATORS = frozenset(" :\t\n")
_PACKAGE = Path(__file__).parent


def _candidates() -> list[Path]:
    """Return the places where the native files may be, best first."""
    override = os.environ.get("NPTLTRACE_NATIVE_DIR")
    if override:
        # Asked for by name: falling back to other files would hide the mistake.
        return [Path(override).absolute()]
    places = [_PACKAGE / "_native"]
    if _buildinfo.NATIVE_DIR:
        places.append(Path(_buildinfo.NATIVE_DIR))
    return places


@cache
def native_dir() -> Path:
    """Return the directory that holds `lib`, `include` and `share`.

    Returns:
        `$NPTLTRACE_NATIVE_DIR` if set, else the directory inside the package, else the one
        that the builder of a distribution package named.

    Raises:
        NativeFilesMissing: None of these holds a `lib` directory.
    """
    places = _candidates()
    for place in places:
        if (place / "lib").is_dir():
            return place
    raise NativeFilesMissing("the native files of nptltrace", [str(place) for place in places])


def lib_dir() -> Path:
    """Return the directory of the libraries."""
    return native_dir() / "lib"


def include_dir() -> Path:
    """Return the directory of the C headers."""
    return native_dir() / "include"


def pkgconfig_dir() -> Path:
    """Return the directory to add to `PKG_CONFIG_PATH`."""
    return lib_dir() / "pkgconfig"


def man_dir() -> Path:
    """Return the directory to add to `MANPATH`.

    A wheel has the pages in `share/man` of the environment, where `man` looks by itself; they are
    those of its own native files only.
    """
    beside = native_dir() / "share" / "man"
    if beside.is_dir() or native_dir() != _PACKAGE / "_native":
        return beside
    return next(iter(_installed("ptt.1")), beside)


def _installed(page: str) -> list[Path]:
    """Return the directory of manual pages that pip made when it installed a wheel."""
    from importlib.metadata import PackageNotFoundError, files

    try:
        found = files("nptltrace") or []
    except PackageNotFoundError:
        return []
    return [Path(file.locate()).resolve().parents[1] for file in found if file.name == page]


def page_dir() -> Path:
    """Return the directory of the viewer's page: `index.html`, `app.js` and `app.css`.

    Raises:
        NativeFilesMissing: PTT was built where there was no node, so without the page.
    """
    path = native_dir() / "share" / "nptltrace" / "page"
    if not (path / "index.html").is_file():
        raise NativeFilesMissing("the page of the viewer (built only where node is)", [str(path)])
    return path


def glibc_dir() -> Path:
    """Return the directory of the trace points for glibc: `edits.toml` and `include`.

    Raises:
        NativeFilesMissing: It is not there.
    """
    path = native_dir() / "share" / "nptltrace" / "glibc"
    if not (path / "edits.toml").is_file():
        raise NativeFilesMissing("the trace points for glibc", [str(path)])
    return path


def handlers_dir() -> Path:
    """Return the directory of the handlers that come with PTT."""
    return lib_dir() / "handlers"


def handlers() -> dict[str, Path]:
    """Return the handlers that come with PTT, by the name `--handler` takes."""
    place = handlers_dir()
    try:
        names = sorted(os.listdir(place))  # noqa: PTH208 -- names
    except OSError:
        names = []
    return {
        name.removeprefix("lib").removesuffix(".so"): place / name
        for name in names
        if name.startswith("lib") and name.endswith(".so")
    }


def library(name: str) -> Path:
    """Return the path of one library.

    Args:
        name: File name, as in `libpttread.so`.

    Raises:
        NativeFilesMissing: There is no such file.
    """
    path = lib_dir() / name
    if not path.is_file():
        raise NativeFilesMissing(name, [str(lib_dir())])
    return path


def preload_path() -> str:
    """Return an absolute path of the tracer that can stand in `LD_PRELOAD`.

    The list cannot quote spaces or colons. When the library lies in a directory with such a
    name, a link to that directory is made in a private directory and the path leads through it.
    """
    path = library(PRELOAD)
    if not _SEPARATORS.intersection(str(path)):
        return str(path)
    # The tracer looks for its handlers beside itself, so the whole directory is linked.
    return str(_plain_link(path.parent) / PRELOAD)


def preload_list(already: str | None = None, locks: str | None = None) -> str:
    """Return a value for `LD_PRELOAD` with the tracer in front of what is there.

    Args:
        already: The value the user has set, if any; kept as it is.
        locks: The shared object for the user's locks, which comes before the tracer.
    """
    return ":".join(filter(None, (locks, preload_path(), already)))


def _plain_link(target: Path) -> Path:
    """Return a link to `target` whose own path holds no separator."""
    from hashlib import sha256

    name = "native-" + sha256(os.fsencode(target)).hexdigest()[:16]
    link = _private_dir() / name
    try:
        link.symlink_to(target)
    except FileExistsError:
        # The name follows from the target, so an older link leads to the same place.
        if not link.is_symlink() or link.readlink() != target:
            raise PttError(f"{link} is in the way: it should lead to {target}") from None
    return link


def private_library(name: str, content: bytes) -> str:
    """Return the path of a shared object of that content, which can stand in `LD_PRELOAD`.

    It stays there: programs that were started with it may start others at any time.
    """
    from hashlib import sha256

    path = _private_dir() / f"{name}-{sha256(content).hexdigest()[:16]}.so"
    if not path.is_file():
        made = path.with_name(f".{path.name}-{os.getpid()}")
        try:
            made.write_bytes(content)
            made.replace(path)
        except OSError as error:
            raise PttError(f"{path}: {error.strerror}") from None
    return str(path)


def _private_dir() -> Path:
    """Return a directory of this user alone whose path holds no separator.

    What lies there is loaded into the user's programs, so nobody else may write to it.
    """
    uid = os.getuid()
    runtime = Path(os.environ.get("XDG_RUNTIME_DIR", ""))
    places = [runtime / "nptltrace"] if runtime.is_absolute() else []
    places += [Path(f"/run/user/{uid}/nptltrace"), Path(f"/tmp/nptltrace-{uid}")]  # noqa: S108 -- checked below
    for place in places:
        if _SEPARATORS.intersection(str(place)):
            continue
        try:
            place.mkdir(mode=0o700, exist_ok=True)
            found = place.lstat()
        except OSError:
            continue
        private = stat.S_ISDIR(found.st_mode) and not found.st_mode & 0o077
        loadable = not os.statvfs(place).f_flag & os.ST_NOEXEC
        if private and loadable and found.st_uid == uid:
            return place
    raise PttError(
        "no private directory for the libraries that programs load: the file system must not be "
        "mounted noexec, and the path must have no space and no colon; tried "
        + ", ".join(map(str, places))
    )
