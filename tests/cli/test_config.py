"""`ptt config`, and behind it the search for the native files."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nptltrace import _buildinfo, _paths
from nptltrace.errors import NativeFilesMissing, PttError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support import Ptt


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    """Let each test search again."""
    _paths.native_dir.cache_clear()
    yield
    _paths.native_dir.cache_clear()


def make_native(directory: Path) -> Path:
    """Make a tree that looks like an installed tree."""
    handlers = directory / "lib" / "handlers"
    handlers.mkdir(parents=True)
    for path in (directory / "lib" / "libnptltrace.so", handlers / "libring.so"):
        path.touch()
    (handlers / "libtext.so").touch()
    return directory


class TestConfig:
    """The command prints the requested paths, one path a line."""

    def test_directories_are_printed(self, ptt: Ptt, tmp_path: Path) -> None:
        native = make_native(tmp_path / "native")
        result = ptt(
            "config",
            "--libdir",
            "--includedir",
            "--pkgconfigdir",
            "--mandir",
            "--preload",
            env={"NPTLTRACE_NATIVE_DIR": str(native)},
        )
        assert result.stdout.splitlines() == [
            f"{native}/lib",
            f"{native}/include",
            f"{native}/lib/pkgconfig",
            f"{native}/share/man",
            f"{native}/lib/libnptltrace.so",
        ]
        assert not result.stderr

    def test_handlers_are_printed(self, ptt: Ptt, tmp_path: Path) -> None:
        native = make_native(tmp_path / "native")
        result = ptt("config", "--handlers", env={"NPTLTRACE_NATIVE_DIR": str(native)})
        handlers = native / "lib" / "handlers"
        assert result.stdout.splitlines() == [f"{handlers}/libring.so", f"{handlers}/libtext.so"]

    def test_missing_files_are_one_clear_line(self, ptt: Ptt, tmp_path: Path) -> None:
        nowhere = tmp_path / "nowhere"
        result = ptt("config", "--libdir", env={"NPTLTRACE_NATIVE_DIR": str(nowhere)}, status=2)
        assert result.stderr == (
            f"ptt: error: the native files of nptltrace not found; looked in {nowhere}\n"
        )


class TestSearch:
    """The search uses the environment first, then the package, then the distribution."""

    def test_a_wrong_environment_variable_is_an_error(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setattr(_buildinfo, "NATIVE_DIR", str(make_native(tmp_path / "distro")))
        monkeypatch.setenv("NPTLTRACE_NATIVE_DIR", str(tmp_path / "nowhere"))
        with pytest.raises(NativeFilesMissing) as caught:
            _paths.native_dir()
        assert caught.value.looked_in == (str(tmp_path / "nowhere"),)

    def test_directories_of_a_distribution_are_found(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        native = make_native(tmp_path / "distro")
        monkeypatch.delenv("NPTLTRACE_NATIVE_DIR", raising=False)
        monkeypatch.setattr(_paths, "_PACKAGE", tmp_path / "package")
        monkeypatch.setattr(_buildinfo, "NATIVE_DIR", str(native))
        assert _paths.native_dir() == native

    def test_package_before_distribution(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        native = make_native(tmp_path / "package" / "_native")
        monkeypatch.delenv("NPTLTRACE_NATIVE_DIR", raising=False)
        monkeypatch.setattr(_paths, "_PACKAGE", tmp_path / "package")
        monkeypatch.setattr(_buildinfo, "NATIVE_DIR", str(make_native(tmp_path / "distro")))
        assert _paths.native_dir() == native

    def test_relative_directory_becomes_absolute(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        make_native(tmp_path / "native")
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("NPTLTRACE_NATIVE_DIR", "native")
        assert _paths.preload_path() == f"{tmp_path}/native/lib/libnptltrace.so"

    def test_error_for_a_missing_library_names_the_directory(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv("NPTLTRACE_NATIVE_DIR", str(make_native(tmp_path / "native")))
        with pytest.raises(NativeFilesMissing, match=r"libpttread\.so not found; looked in .*/lib"):
            _paths.library("libpttread.so")


class TestPreload:
    """`LD_PRELOAD` cannot quote, so links replace paths with separators."""

    @pytest.fixture(params=["with space", "with:colon", "with both: of them"])
    def awkward(
        self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> Path:
        native = make_native(tmp_path / str(request.param))
        runtime = tmp_path / "runtime"
        runtime.mkdir(mode=0o700)
        monkeypatch.setenv("NPTLTRACE_NATIVE_DIR", str(native))
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
        return native

    def test_path_has_no_separator_and_leads_to_the_library(self, awkward: Path) -> None:
        path = _paths.preload_path()
        assert not set(" :") & set(path)
        assert Path(path).resolve() == (awkward / "lib" / "libnptltrace.so").resolve()
        assert (Path(path).parent / "handlers" / "libring.so").is_file()

    def test_link_is_the_same_each_time(self, awkward: Path) -> None:
        assert _paths.preload_path() == _paths.preload_path()

    def test_directory_is_private(self, awkward: Path) -> None:
        directory = Path(_paths.preload_path()).parent.parent
        assert stat.S_IMODE(directory.lstat().st_mode) == 0o700

    def test_link_of_another_user_is_refused(self, awkward: Path) -> None:
        link = Path(_paths.preload_path()).parent
        link.unlink()
        link.symlink_to("/elsewhere")
        with pytest.raises(PttError, match="in the way"):
            _paths.preload_path()

    def test_directory_open_to_others_is_not_used(self, awkward: Path, tmp_path: Path) -> None:
        directory = tmp_path / "runtime" / "nptltrace"
        directory.mkdir()
        directory.chmod(0o777)
        assert not _paths.preload_path().startswith(str(directory))

    def test_value_of_the_user_is_kept_behind(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        native = make_native(tmp_path / "native")
        monkeypatch.setenv("NPTLTRACE_NATIVE_DIR", str(native))
        ours = os.fspath(native / "lib" / "libnptltrace.so")
        assert _paths.preload_list() == ours
        assert _paths.preload_list("") == ours
        assert _paths.preload_list("/a.so /b.so") == f"{ours}:/a.so /b.so"

    def test_manual_pages_of_a_wheel_lie_beside_its_files(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setattr(_paths, "_PACKAGE", tmp_path / "package")
        monkeypatch.setattr(_paths, "_installed", lambda _page: [tmp_path / "share" / "man"])
        native = make_native(tmp_path / "native")
        monkeypatch.setenv("NPTLTRACE_NATIVE_DIR", str(native))
        assert _paths.man_dir() == native / "share" / "man"
        make_native(tmp_path / "package" / "_native")
        monkeypatch.delenv("NPTLTRACE_NATIVE_DIR")
        _paths.native_dir.cache_clear()
        assert _paths.man_dir() == tmp_path / "share" / "man"
