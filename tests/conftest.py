"""Fixtures for all tests: the native stage, `ptt` itself, programs, recordings, a browser."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

# A failed comparison in a helper shows both values, as in a test.
HERE = Path(__file__).parent
pytest.register_assert_rewrite(
    *(f"tests.{p.name}" for p in HERE.iterdir() if p.is_dir()), "tests.support"
)

from tests.support import PROGRAMS, ROOT, Compiler, Ptt, Recorder  # noqa: E402 -- must not be loaded before the line above

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser

CHROMIUM = Path("/usr/bin/chromium")
CHROMIUM_FLAGS = (
    "--no-sandbox", "--disable-background-networking", "--disable-component-update",
    "--disable-dev-shm-usage", "--disable-gpu",
)  # fmt: skip

# The load of the machine must not change the events. Tests of SCHED_* events set this themselves.
os.environ["PTT_SCHED"] = "none"
# To keep names in a trace takes longer than most test programs. Tests of names set this themselves.
os.environ["PTT_BUNDLE"] = "none"

# The same examples every time: a failure comes from the change. PTT_EXPLORE=1 tries others.
# There is no deadline: the speed of the machine is not part of the tests.
hypothesis.settings.register_profile(
    "same",
    derandomize=not os.environ.get("PTT_EXPLORE"),
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("same")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let workers start with slow files, so that no slow file is left for the end.

    Files with slow tests come first, and then files with many tests.
    """
    if "PYTEST_XDIST_WORKER" in os.environ:
        slow = {item.path for item in items if item.get_closest_marker("slow")}
        tests = Counter(item.path for item in items)
        items.sort(key=lambda item: (item.path not in slow, -tests[item.path]))


@pytest.fixture(scope="session", autouse=True)
def _interruptible() -> None:
    """Restore the default action of SIGINT: background jobs of a shell, and children, ignore it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def native_stage() -> Path:
    """Directory of the native files: $NPTLTRACE_NATIVE_DIR, or built now by `make dev`."""
    given = os.environ.get("NPTLTRACE_NATIVE_DIR")
    if given:
        return Path(given).absolute()
    stage = ROOT / "build" / "dev" / "stage"
    stage.mkdir(parents=True, exist_ok=True)
    with (stage.parent / "build.lock").open("w") as lock:
        # Two test runs at once in one tree would build over each other.
        fcntl.flock(lock, fcntl.LOCK_EX)
        built = subprocess.run(
            ["make", "-C", ROOT, "dev"], capture_output=True, encoding="utf-8", check=False
        )
    assert built.returncode == 0, f"make dev failed:\n{built.stdout[-4000:]}\n{built.stderr}"
    return stage


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium without a window, one for all tests of a module."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if not CHROMIUM.exists():
        pytest.skip("chromium is not installed")
    with sync_api.sync_playwright() as playwright:
        found = playwright.chromium.launch(
            executable_path=CHROMIUM, args=list(CHROMIUM_FLAGS), timeout=60_000
        )
        yield found
        found.close()


@pytest.fixture(scope="session")
def node_packages() -> Path:
    """Directory of the packages that web/package.json names for tests."""
    directory = ROOT / "build" / "web" / "node_modules"
    made = subprocess.run(["make", "-C", ROOT, "build/web/packages"], check=False)
    if made.returncode or not directory.exists():
        pytest.skip("npm cannot fetch the packages of the page")
    return directory


@pytest.fixture
def native_in_process(native_stage: Path) -> Iterator[None]:
    """Let the package in this process use the native files under test."""
    from nptltrace import _paths

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NPTLTRACE_NATIVE_DIR", str(native_stage))
        _paths.native_dir.cache_clear()
        yield
    _paths.native_dir.cache_clear()


@pytest.fixture(scope="session")
def ptt(native_stage: Path) -> Ptt:
    """Runner of `ptt`: `ptt("stat", trace)`, `ptt("nonsense", status=2)`."""
    return Ptt(native_stage)


@pytest.fixture
def compile_c(tmp_path: Path, native_stage: Path) -> Compiler:
    """Compiler of C text: `compile_c("int main(void) { return 0; }", "-lm")`."""
    directory = tmp_path / "programs"
    directory.mkdir()
    return Compiler(directory, native_stage / "include")


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory, native_stage: Path) -> Callable[[str], Path]:
    """Programs of tests/programs, each compiled once: `program("sem")`."""
    compiler = Compiler(tmp_path_factory.mktemp("programs"), native_stage / "include")
    known: dict[str, Path] = {}

    def get(name: str) -> Path:
        if name not in known:
            known[name] = compiler(PROGRAMS / f"{name}.c")
        return known[name]

    return get


@pytest.fixture
def record(tmp_path: Path, ptt: Ptt) -> Recorder:
    """Recorder: `trace = record(program("mutex"), "4", options=("-l", "3"))`."""
    directory = tmp_path / "traces"
    directory.mkdir()
    return Recorder(ptt, directory)


@pytest.fixture
def trace_dir(tmp_path: Path) -> Path:
    """A path for a new trace; nothing is there yet."""
    return tmp_path / "run.ptt"
