"""Gets the source of glibc: from the distribution, from a tarball, or from a directory."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nptltrace.errors import PttError, UsageError

if TYPE_CHECKING:
    from nptltrace.nptl.libc import Libc

__all__ = ["Source", "fetch_tools", "unpack"]

# Programs for the build of glibc besides a compiler, and their packages on Debian.
_TOOLS = {"bison": ("bison", "m4"), "gawk": ("gawk",), "make": ("make",), "xz": ("xz-utils",)}


class Source(NamedTuple):
    """An unpacked source of glibc.

    Attributes:
        tree: The root, which may be changed.
        package: The package that the built library names as its own.
        stands_in: The source is the system's release: the system's `ld.so` can load the library.
    """

    tree: Path
    package: str
    stands_in: bool


def _run(command: list[str], cwd: Path, what: str, env: dict[str, str] | None = None) -> None:
    try:
        done = subprocess.run(
            command, cwd=cwd, env=env, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise PttError(f"cannot {what}: there is no {command[0]}") from None
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if not line.startswith("W:")]
        raise PttError(f"cannot {what}: {lines[-1] if lines else f'{command[0]} failed'}")


def _with_libraries(names: list[str]) -> list[str]:
    """Return Debian packages and the libraries that they depend on, without the C library."""
    command = ["apt-cache", "depends", "--important", *names]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    packages = dict.fromkeys(names)
    for line in done.stdout.splitlines():
        kind, _, name = line.strip().partition("Depends: ")
        if kind in {"", "Pre"} and name.startswith("lib") and name != "libc6":
            packages[name] = None
    return list(packages)


def _unpack_packages(names: list[str], work: Path, into: Path) -> None:
    """Get Debian packages and unpack them. This needs no privileges."""
    packages = work / "packages"
    packages.mkdir(exist_ok=True)
    for name in names:
        _run(["apt-get", "download", name], packages, f"get the package {name}")
    for file in packages.glob("*.deb"):
        _run(["dpkg-deb", "--extract", str(file), str(into)], work, f"unpack {file.name}")
    shutil.rmtree(packages)


def _revision_in_archive(version: str) -> str:
    """Return the installed revision, or the archive's newest revision of the same glibc.

    An archive drops a revision when it gets the next revision. Revisions of a release differ in
    patches, and the libraries of each revision work with the programs of the others.
    """
    command = ["apt-cache", "madison", "glibc-source"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return version
    rows = [line.split("|") for line in done.stdout.splitlines()]
    archived = [row[1].strip() for row in rows if len(row) > 1]
    release = version.partition("-")[0]
    same = [revision for revision in archived if revision.partition("-")[0] == release]
    return version if version in archived or not same else same[0]


def unpack(source: str, libc: Libc, work: Path, env: dict[str, str]) -> Source:
    """Put the source of glibc into a new directory.

    Args:
        source: The path of a tarball or of a directory (it is copied); or `debian` for the package
            `glibc-source` of the installed revision. If the archive has dropped this revision, the
            newest revision of the release is taken.
        libc: The installed C library.
        work: A directory for temporary files.
        env: The environment from `fetch_tools`.

    Raises:
        UsageError: The source does not exist, or it is no glibc.
        PttError: The source cannot be fetched or unpacked.
    """
    if source == "debian":
        version = libc.distribution_version
        if not libc.package.startswith(("Debian", "Ubuntu")) or not version:
            raise UsageError(
                f"{libc.package} is not a Debian glibc: name its source with --source TARBALL|DIR"
            )
        package, revision = work / "glibc-source", _revision_in_archive(version)
        _unpack_packages([f"glibc-source={revision}"], work, package)
        # The tarball of this package contains the distribution's patches.
        tarballs = sorted((package / "usr" / "src" / "glibc").glob("glibc-*.tar.*"))
        if len(tarballs) != 1:
            raise PttError("the package glibc-source holds no tarball of glibc")
        tree = _unpack_tarball(tarballs[0], work, env)
        shutil.rmtree(package)
        return Source(tree, libc.package.removesuffix(version) + revision, stands_in=True)
    path = Path(source)
    if path.is_dir():
        tree = work / "source"
        shutil.copytree(path, tree, symlinks=True, ignore=shutil.ignore_patterns(".git"))
        _check(tree, source)
    elif path.is_file():
        tree = _unpack_tarball(path.absolute(), work, env)
    else:
        raise UsageError(f"--source {source}: no such file or directory (or say debian)")
    return Source(tree, f"nptltrace, from {path.name}", stands_in=False)


def _unpack_tarball(path: Path, work: Path, env: dict[str, str]) -> Path:
    tree = work / "source"
    tree.mkdir()
    command = ["tar", "--extract", "--no-same-owner", "--strip-components=1", f"--file={path}"]
    _run(command, tree, f"unpack {path}", env)
    _check(tree, str(path))
    return tree


def _check(tree: Path, source: str) -> None:
    if not (tree / "nptl" / "pthread_create.c").is_file() or not (tree / "version.h").is_file():
        raise UsageError(f"--source {source}: not the source of a glibc")


def fetch_tools(work: Path) -> dict[str, str]:
    """Get the missing programs for the build, without an installation.

    Args:
        work: The directory for the programs.

    Returns:
        The environment for the build, with the programs in its `PATH`.

    Raises:
        PttError: There is no compiler, or a program cannot be fetched.
    """
    env = {**os.environ, "LC_ALL": "C"}
    for name in ("LD_PRELOAD", "LD_LIBRARY_PATH", "PTHREAD_NPTL_TRACE"):
        env.pop(name, None)  # glibc refuses to be built with these variables
    if shutil.which("gcc") is None:
        raise PttError("glibc is built with gcc, which is missing (apt-get install gcc libc6-dev)")
    missing = [name for name in _TOOLS if shutil.which(name) is None]
    if not missing:
        return env
    if shutil.which("apt-get") is None:
        raise PttError(f"glibc cannot be built without {', '.join(missing)}")
    tools = work / "tools"
    packages = [package for name in missing for package in _TOOLS[name]]
    _unpack_packages(_with_libraries(packages), work, tools)
    _wrap(tools)
    env["PATH"] = f"{tools / 'wrapped'}{os.pathsep}{env.get('PATH', os.defpath)}"
    env["BISON_PKGDATADIR"] = str(tools / "usr" / "share" / "bison")
    return env


def _wrap(tools: Path) -> None:
    """Write a script for each program that sets the library path for this program only."""
    wrapped = tools / "wrapped"
    wrapped.mkdir()
    libraries = ":".join(
        str(path)
        for path in [*tools.glob("usr/lib/*-linux-gnu"), *tools.glob("lib/*-linux-gnu")]
        if path.is_dir()
    )
    m4 = f"M4={wrapped / 'm4'} " if (tools / "usr/bin/m4").exists() else ""
    for program in (tools / "usr" / "bin").iterdir():
        script = wrapped / program.name
        script.write_text(f'#!/bin/sh\n{m4}LD_LIBRARY_PATH={libraries} exec {program} "$@"\n')
        script.chmod(0o755)
