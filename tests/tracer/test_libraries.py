"""dlopen and dlclose in traced programs."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support import Compiler
    from tests.tracer.counted import Runner

LIBRARY = "int used(void) { return 1; }\n"


def test_threads_open_and_close_libraries_at_once(
    traced: Runner, program: Callable[[str], Path], compile_c: Compiler, tmp_path: Path
) -> None:
    library = compile_c(LIBRARY, "-shared", "-fPIC")
    other = shutil.copy(library, tmp_path / "other.so")
    # the deadlock appeared within a few hundred rounds
    assert traced(program("dl_two"), library, other, "5000", level=1).status == 0
