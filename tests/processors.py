"""Other processors than the processor of the test: Debian's cross compilers, and qemu-user."""

from __future__ import annotations

import platform
import shutil
import subprocess
from dataclasses import dataclass

import pytest

__all__ = ["Processor"]


@dataclass(frozen=True)
class Processor:
    """A processor that programs are compiled for.

    Attributes:
        machine: The name that the kernel uses.
    """

    machine: str

    def is_here(self) -> bool:
        """Return whether the test runs on this processor."""
        return self.machine == platform.machine()

    def tool(self, name: str) -> str:
        """Return the name of a tool that makes programs for this processor."""
        return name if self.is_here() else f"{self.machine}-linux-gnu-{name}"

    def emulator(self) -> list[str]:
        """Return the emulator for its programs; skip the test if there is no emulator."""
        if self.is_here():
            return []
        names = (f"qemu-{self.machine}-static", f"qemu-{self.machine}")
        found = next(filter(None, map(shutil.which, names)), None)
        if not found or not shutil.which(self.tool("gcc")):
            pytest.skip(f"no compiler or qemu-user for {self.machine}")
        return [found, "-L", f"/usr/{self.machine}-linux-gnu"]

    def library(self, name: str) -> str:
        """Return the path at which the compiler finds a library."""
        done = subprocess.run(
            [self.tool("gcc"), f"-print-file-name={name}"],
            capture_output=True,
            encoding="utf-8",
            check=True,
        )
        return done.stdout.strip()
