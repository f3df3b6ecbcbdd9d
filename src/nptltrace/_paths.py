"""Where the native files are: libraries, handlers, headers, pkg-config files."""

from __future__ import annotations

import os
import stat
import sys
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
    "ptt_command",
    "python_command",
]

PRELOAD = "libnptltrace.so"
# The dynamic linker splits LD_PRELOAD at these and knows no way to quote them.
_SEPARATORS = frozenset(" :\t\n")
_PACKAGE = Path(__file__).parent


def ptt_command(*arguments: str) -> list[str]:
    """Return a command that runs `ptt` of this package, wherever the package lies."""
    return python_command("nptltrace.__main__", "entry", *arguments)


def python_command(module: str, function: str, *arguments: str) -> list[str]:
    """Return a command that calls a function of this package, wherever the package lies.

    Args:
        module: The module with the function.
        function: The function. It takes no arguments.
        arguments: Arguments of the command, which the function reads from `sys.argv`.
    """
    code = (
        "import sys\nsys.path.insert(0, sys.argv.pop(1))\n"
        f"from {module} import {function}\n{function}()"
    )
    return [sys.executable, "-P", "-c", code, str(_PACKAGE.parent), *arguments]


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

    A wheel installs the pages in `share/man` of the environment, where `man` finds them. These
    pages describe only the native files of the wheel itself.
    """
    beside = native_dir() / "share" / "man"
    if beside.is_dir() or native_dir() != _PACKAGE / "_native":
        return beside
    return next(iter(_installed("ptt.1")), beside)


def _installed(page: str) -> list[Path]:
    """Return the directory of the manual pages that pip installed from a wheel, or nothing."""
    from importlib.metadata import PackageNotFoundError, files

    try:
        installed = files("nptltrace") or []
    except PackageNotFoundError:
        return []
    return [Path(file.locate()).resolve().parents[1] for file in installed if file.name == page]


def page_dir() -> Path:
    """Return the directory of the viewer's page: `index.html`, `app.js` and `app.css`.

    Raises:
        NativeFilesMissing: PTT was built without the page, because there was no node.
    """
    path = native_dir() / "share" / "nptltrace" / "page"
    if not (path / "index.html").is_file():
        raise NativeFilesMissing("the page of the viewer (built only where node is)", [str(path)])
    return path


def glibc_dir() -> Path:
    """Return the directory of the trace points for glibc: `edits.toml` and `include`.

    Raises:
        NativeFilesMissing: There is no such directory.
    """
    path = native_dir() / "share" / "nptltrace" / "glibc"
    if not (path / "edits.toml").is_file():
        raise NativeFilesMissing("the trace points for glibc", [str(path)])
    return path


def handlers_dir() -> Path:
    """Return the directory of PTT's handlers."""
    return lib_dir() / "handlers"


def handlers() -> dict[str, Path]:
    """Return the paths of PTT's handlers, by the names that `--handler` takes."""
    directory = handlers_dir()
    try:
        names = sorted(os.listdir(directory))  # noqa: PTH208 -- names
    except OSError:
        names = []
    return {
        name.removeprefix("lib").removesuffix(".so"): directory / name
        for name in names
        if name.startswith("lib") and name.endswith(".so")
    }


def library(name: str) -> Path:
    """Return the path of one library.

    Args:
        name: File name, such as `libpttread.so`.

    Raises:
        NativeFilesMissing: There is no such file.
    """
    path = lib_dir() / name
    if not path.is_file():
        raise NativeFilesMissing(name, [str(lib_dir())])
    return path


def preload_path() -> str:
    """Return an absolute path of the tracer for `LD_PRELOAD`.

    The list cannot quote spaces or colons; see ld.so(8). If the path of the library has one, the
    returned path leads through a link in a private directory.

    Raises:
        NativeFilesMissing: There is no tracer.
        PttError: There is no private directory, or a file is in the place of the link.
    """
    path = library(PRELOAD)
    if not _SEPARATORS.intersection(str(path)):
        return str(path)
    # The tracer looks for its handlers beside itself, so the whole directory is linked.
    return str(_plain_link(path.parent) / PRELOAD)


def preload_list(already: str | None = None, locks: str | None = None) -> str:
    """Return a value for `LD_PRELOAD` that begins with the tracer.

    Args:
        already: The value that the user has set, if any; it follows the tracer.
        locks: The shared object for the user's locks; it precedes the tracer.
    """
    return ":".join(filter(None, (locks, preload_path(), already)))


def _plain_link(target: Path) -> Path:
    """Return a link to `target` with a path that has no separator."""
    from hashlib import sha256

    name = "native-" + sha256(os.fsencode(target)).hexdigest()[:16]
    link = _private_dir() / name
    try:
        link.symlink_to(target)
    except FileExistsError:
        # The name is a hash of the target, so an older link has the same target.
        if not link.is_symlink() or link.readlink() != target:
            raise PttError(f"{link} is in the way: it should lead to {target}") from None
    return link


def private_library(name: str, content: bytes) -> str:
    """Write a shared object into a private directory, and return its path for `LD_PRELOAD`.

    The file stays there: programs that were started with it may start others at any time.

    Args:
        name: The begin of the file name; a hash of the content follows.
        content: The shared object.

    Raises:
        PttError: There is no private directory, or the file cannot be written.
    """
    from hashlib import sha256

    path = _private_dir() / f"{name}-{sha256(content).hexdigest()[:16]}.so"
    if not path.is_file():
        temporary = path.with_name(f".{path.name}-{os.getpid()}")
        try:
            temporary.write_bytes(content)
            temporary.replace(path)
        except OSError as error:
            raise PttError(f"{path}: {error.strerror}") from None
    return str(path)


def _private_dir() -> Path:
    """Return a directory that only this user can write to, and with a path without separators.

    The user's programs load files from this directory.
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
            status = place.lstat()
        except OSError:
            continue
        private = stat.S_ISDIR(status.st_mode) and not status.st_mode & 0o077
        loadable = not os.statvfs(place).f_flag & os.ST_NOEXEC
        if private and loadable and status.st_uid == uid:
            return place
    raise PttError(
        "no private directory for the libraries that programs load: the file system must not be "
        "mounted noexec, and the path must have no space and no colon; tried "
        + ", ".join(map(str, places))
    )
