"""Facts about the machine for the trace."""

from __future__ import annotations

import os
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["boot_id", "clock_uuid", "describe_host"]


def boot_id() -> str:
    """Return the boot id of the machine (random(4)), or an empty text."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def clock_uuid(name: str, otherwise: str) -> str:
    """Return a UUID for a clock of this boot; `otherwise` if the boot id is unknown."""
    boot = boot_id().replace("-", "")
    try:
        # The boot id, combined with the name of the clock: each clock of each boot has its own.
        number = int(boot, 16) ^ int.from_bytes(name.encode()[:16].ljust(16, b"\0"))
    except ValueError:
        return otherwise
    digits = f"{number & ~(0xF000_C000 << 48) | 0x8000_8000 << 48:032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:32]))


def describe_host() -> dict[str, Any]:
    """Return host name, kernel, architecture, C library, number of processors and boot id."""
    system = os.uname()
    try:
        libc = os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (OSError, ValueError):
        libc = ""
    return {
        "hostname": system.nodename,
        "kernel": f"{system.sysname} {system.release}",
        "machine": system.machine,
        "libc": libc,
        "cpus": os.cpu_count() or 0,
        "boot_id": boot_id(),
    }
