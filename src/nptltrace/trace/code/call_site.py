"""Numbers of call sites, and the call sites in a recorded call stack.

The low 48 bits of a call site are an address. The bits above hold the generation: how many other
modules had this address before. The top bit marks an entry, where code begins, as in the first
routine of a thread. All other call sites are return addresses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nptltrace._binding.headers import pttread

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "ADDRESS", "ENTRY", "address_of_site", "generation_of_site", "hex_of_site", "is_entry",
    "stack_sites",
]  # fmt: skip

ADDRESS, ENTRY = pttread.PTT_SITE_ADDRESS, pttread.PTT_SITE_ENTRY


def address_of_site(site: int) -> int:
    """Return the address of a call site."""
    return site & ADDRESS


def hex_of_site(site: int) -> str:
    """Return the address of a call site as text, for a call site without a name."""
    return f"{address_of_site(site):#x}"


def generation_of_site(site: int) -> int:
    """Return the generation: how many other modules had the address before."""
    return (site & ~ENTRY) >> 48


def is_entry(site: int) -> bool:
    """Return whether code begins at a call site; other call sites are return addresses."""
    return bool(site & ENTRY)


def stack_sites(stacks: Mapping[int, tuple[int, int]], number: int) -> list[int]:
    """Return the call sites in a stack, the innermost first.

    Args:
        stacks: By number of a stack, the number of the caller's stack and an address.
        number: The number of the stack.
    """
    sites: list[int] = []
    while number in stacks and len(sites) < len(stacks):
        number, address = stacks[number]
        sites.append(address)
    return sites
