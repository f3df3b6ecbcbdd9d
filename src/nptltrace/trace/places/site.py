"""What the number of a call site in a column says.

Its low 48 bits are an address. Above them stands which of the modules that had this address one
after the other is meant, 0 for the first, and whether code is entered there instead of returned
to, as a thread enters its first routine.
"""

from __future__ import annotations

from nptltrace._binding.headers import pttread

__all__ = [
    "ADDRESS", "ENTRY", "address_of_site", "generation_of_site", "hex_of_site", "is_entry",
]  # fmt: skip

ADDRESS, ENTRY = pttread.PTT_SITE_ADDRESS, pttread.PTT_SITE_ENTRY


def address_of_site(site: int) -> int:
    """Return the address of a call site."""
    return site & ADDRESS


def hex_of_site(site: int) -> str:
    """Return the address of a call site as text, for one that has no name."""
    return f"{address_of_site(site):#x}"


def generation_of_site(site: int) -> int:
    """Return how many other modules had the address before the one that is meant."""
    return (site & ~ENTRY) >> 48


def is_entry(site: int) -> bool:
    """Return whether code is entered there, not returned to."""
    return bool(site & ENTRY)
