"""The wheel: built once, inspected, and installed without a compiler."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import nptltrace
from nptltrace import cli
from tests.support import ROOT, clean_environment

pytestmark = pytest.mark.slow

NATIVE = "nptltrace/_native"
# Files in share/ of the environment, where `man` and the shells search.
SHARE = f"nptltrace-{nptltrace.__version__}.data/data/share"
INFO = f"nptltrace-{nptltrace.__version__}.dist-info"
FILES = [
    f"{NATIVE}/include/nptl_trace.h",
    f"{NATIVE}/include/nptl_trace_events.h",
    f"{NATIVE}/lib/libnptltrace.so",
    f"{NATIVE}/lib/libpttcollect.so",
    f"{NATIVE}/lib/libpttinject.so",
    f"{NATIVE}/lib/libpttread.so",
    f"{NATIVE}/lib/libptttasks.so",
    f"{NATIVE}/lib/libptttrack.so",
    f"{NATIVE}/lib/handlers/libfile.so",
    f"{NATIVE}/lib/handlers/libring.so",
    f"{NATIVE}/lib/handlers/libshared.so",
    f"{NATIVE}/lib/handlers/libtext.so",
    f"{NATIVE}/lib/pkgconfig/nptltrace.pc",
    f"{SHARE}/bash-completion/completions/ptt",
    f"{SHARE}/fish/vendor_completions.d/ptt.fish",
    f"{SHARE}/man/man1/ptt.1",
    f"{SHARE}/man/man3/nptl_trace.h.3",
    f"{SHARE}/man/man7/nptltrace.7",
    f"{SHARE}/zsh/site-functions/_ptt",
    f"{INFO}/licenses/LICENSE",
    f"{INFO}/licenses/web/licences.txt",
    f"{INFO}/sboms/nptltrace.cdx.json",
    "nptltrace/py.typed",
]
PAGE = [f"{NATIVE}/share/nptltrace/page/{name}" for name in ("index.html", "app.js", "app.css")]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built without isolation from a copy of the tree."""
    source = tmp_path_factory.mktemp("source") / "ptt"
    # The build must not use files of other builds, nor leave files behind.
    shutil.copytree(
        ROOT, source, ignore=shutil.ignore_patterns("build", "dist", ".*", "__pycache__")
    )
    out = tmp_path_factory.mktemp("dist")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--no-deps"]
    built = subprocess.run(
        [*pip, "--no-build-isolation", "--wheel-dir", out, source],
        env=clean_environment(PYTHONPATH=None),
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    (made,) = out.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh virtual environment with the wheel, in a directory with a space in its name."""
    environment = tmp_path_factory.mktemp("fresh one") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    python = environment / "bin" / "python"
    pip = [sys.executable, "-m", "pip", f"--python={python}", "install", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--quiet", wheel], env=clean_environment(), check=True)
    return environment


def run(installed: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """Run the installed `ptt` with an empty search path, so that `ptt` finds no compiler."""
    bin_dir = str(installed / "bin")
    env = clean_environment(PATH=bin_dir, PYTHONPATH=None, NPTLTRACE_NATIVE_DIR=None)
    # A console script needs a PATH for sh if the path of its interpreter has a space.
    python = os.fspath(installed / "bin" / "python")
    return subprocess.run(
        [python, os.fspath(installed / "bin" / "ptt"), *args],
        env=env,
        capture_output=True,
        encoding="utf-8",
        check=True,
    )


class TestContents:
    """One wheel for every Python, with all files of PTT and no others."""

    def test_the_tag_fits_every_python(self, wheel: Path) -> None:
        name = rf"nptltrace-{re.escape(nptltrace.__version__)}-py3-none-linux_\w+\.whl"
        assert re.fullmatch(name, wheel.name)

    def test_the_wheel_has_all_files(self, wheel: Path) -> None:
        names = set(zipfile.ZipFile(wheel).namelist())
        pages = {f"{SHARE}/man/man1/ptt-{name}.1" for name in cli.command_names()}
        missing = sorted((pages | set(FILES)) - names)
        assert not missing

    def test_the_wheel_has_the_viewer_page(self, wheel: Path) -> None:
        if shutil.which("node") is None or shutil.which("npm") is None:
            pytest.skip("node and npm are not installed")
        assert set(PAGE) <= set(zipfile.ZipFile(wheel).namelist())

    def test_the_wheel_has_no_other_files(self, wheel: Path) -> None:
        top = {name.partition("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
        assert top == {"nptltrace", INFO, SHARE.partition("/")[0]}
        native = {
            name.split("/")[2]
            for name in zipfile.ZipFile(wheel).namelist()
            if name.startswith(NATIVE)
        }
        assert native == {"include", "lib", "share"}

    def test_static_libraries_are_left_out(self, wheel: Path) -> None:
        # except the library that programs link
        static = [name for name in zipfile.ZipFile(wheel).namelist() if name.endswith(".a")]
        assert [Path(name).name for name in static] == ["libposixtrace.a"]

    def test_the_wheel_contains_no_path_of_the_build(self, wheel: Path) -> None:
        # otherwise two builds in two directories would differ
        made_in = os.fsencode(wheel.parents[1])
        found = zipfile.ZipFile(wheel)
        assert not [name for name in found.namelist() if made_in in found.read(name)]
        assert {item.date_time[:3] for item in found.infolist()} == {
            tuple(map(int, nptltrace.__date__.split("-")))
        }

    def test_licences_of_the_page_are_in_the_page(self, wheel: Path) -> None:
        if shutil.which("node") is None or shutil.which("npm") is None:
            pytest.skip("node and npm are not installed")
        script = zipfile.ZipFile(wheel).read(PAGE[1]).decode()
        licences = (ROOT / "web" / "licences.txt").read_text("utf-8")
        assert "Apache License" in licences
        assert licences in script
        metadata = zipfile.ZipFile(wheel).read(f"{INFO}/METADATA").decode()
        assert "\nLicense-Expression: MIT AND Apache-2.0 AND 0BSD\n" in metadata

    def test_the_description_has_no_relative_links(self, wheel: Path) -> None:
        _, _, text = zipfile.ZipFile(wheel).read(f"{INFO}/METADATA").decode().partition("\n\n")
        assert text.startswith("# PTT")
        assert not [to for to in re.findall(r"\]\((.*?)\)", text) if not to.startswith("https://")]

    def test_components_are_listed(self, wheel: Path) -> None:
        jsonschema = pytest.importorskip("jsonschema")
        resources = pytest.importorskip("cyclonedx.schema")
        found = Path(resources.__file__).parent.glob("_res/bom-1.6*.schema.json")
        schema = json.loads(next(found).read_text("utf-8"))
        # The schema refers to schemas of licences and signatures, in files beside it.
        document = json.loads(zipfile.ZipFile(wheel).read(f"{INFO}/sboms/nptltrace.cdx.json"))
        own = {**schema, "definitions": {**schema["definitions"], "signature": {}}}
        own["definitions"]["licenseChoice"] = {}
        jsonschema.Draft7Validator(own).validate(document)
        bundled = document["metadata"]["component"]["components"]
        assert {part["name"] for part in bundled} == {"apache-arrow", "flatbuffers", "tslib"}


class TestInstalled:
    """The installed package works without a compiler and without the column libraries."""

    @pytest.mark.parametrize("option", ["libdir", "includedir", "pkgconfigdir", "mandir"])
    def test_config_names_directories(self, installed: Path, option: str) -> None:
        path = Path(run(installed, "config", f"--{option}").stdout.rstrip("\n"))
        assert path.is_dir()
        assert path.is_relative_to(installed)

    def test_manual_pages_are_found(self, installed: Path) -> None:
        if shutil.which("man") is None:
            pytest.skip("man is not installed")
        env = clean_environment(PATH=f"{installed / 'bin'}:/usr/bin:/bin", MANPATH=None)
        found = subprocess.run(
            ["man", "--where", "ptt-record"],
            env=env, capture_output=True, encoding="utf-8", check=True,
        ).stdout  # fmt: skip
        assert Path(found.strip()) == installed / "share" / "man" / "man1" / "ptt-record.1"

    def test_config_names_handlers(self, installed: Path) -> None:
        paths = [Path(line) for line in run(installed, "config", "--handlers").stdout.splitlines()]
        assert {"libring.so", "libtext.so"} <= {path.name for path in paths}
        assert all(path.is_file() for path in paths)

    def test_tracer_can_be_preloaded_in_spite_of_the_space(self, installed: Path) -> None:
        preload = run(installed, "config", "--preload").stdout.rstrip("\n")
        done = subprocess.run(
            ["/bin/true"],
            env=clean_environment(LD_PRELOAD=preload),
            capture_output=True,
            encoding="utf-8",
            check=True,
        )
        assert not done.stderr

    def test_a_handler_is_built_with_pkg_config(self, installed: Path, tmp_path: Path) -> None:
        if shutil.which("pkg-config") is None:
            pytest.skip("pkg-config is not installed")
        path = run(installed, "config", "--pkgconfigdir").stdout.rstrip("\n")
        flags = subprocess.run(
            ["pkg-config", "--cflags", "nptltrace"],
            env=clean_environment(PKG_CONFIG_PATH=path),
            capture_output=True,
            encoding="utf-8",
            check=True,
        ).stdout
        source = tmp_path / "handler.c"
        source.write_text(
            "#include <nptl_trace.h>\n"
            "int count;\n"
            "void nptl_trace_handler_getevent(struct nptl_trace_event event)\n"
            "{\n\tcount += event.param_size > 0;\n}\n"
        )
        output = os.fspath(tmp_path / "libmine.so")
        # The shell removes the quotes around the blank in the path, as in a makefile.
        command = f"cc -Wall -Werror -shared -fPIC {flags.strip()} -o {output} {source}"
        subprocess.run(["sh", "-c", command], check=True)

    def test_record_starts_without_the_column_libraries(
        self, installed: Path, tmp_path: Path
    ) -> None:
        if "record" not in cli.command_names():
            pytest.skip("no command records yet")
        trace = tmp_path / "run.ptt"
        done = run(installed, "record", "-o", str(trace), "--", "/bin/true")
        assert (trace / "metadata").is_file()
        assert "ptt: recorded" in done.stderr
