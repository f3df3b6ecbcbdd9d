"""Detail levels: parses the SPEC of users into a level for each domain."""

from __future__ import annotations

from types import MappingProxyType

from nptltrace._dataclasses import dataclass
from nptltrace.catalog import DOMAINS
from nptltrace.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["DEFAULT", "HIGHEST", "Levels", "parse_levels"]

HIGHEST = 4
DEFAULT = 2
# The ends of PTT's names: all events, or only calls and returns of routines.
_PTT_LEVELS = {"ALL": 4, "IO": 3}
_ALWAYS = ("handler", "process", "user")


@dataclass(frozen=True)
class Levels:
    """Detail levels of all domains.

    Attributes:
        base: Level of the domains that are not in `domains`; None: unchanged.
        domains: Level by name of the domain.
        text: The text of the user.
    """

    base: int | None
    domains: Mapping[str, int] = MappingProxyType({})
    text: str = ""

    @property
    def number(self) -> int:
        """The level as one number, for the verbosity field of `PTHREAD_NPTL_TRACE`."""
        return DEFAULT if self.base is None else self.base

    @property
    def highest(self) -> int:
        """The highest level of any domain."""
        return max(self.number, *self.domains.values()) if self.domains else self.number

    @property
    def argument(self) -> str:
        """The levels of `domains`, such as `mutex=3,cond=2`; may be empty."""
        return ",".join(f"{name}={level}" for name, level in self.domains.items())

    def of(self, domain: str) -> int | None:
        """Return the level of one domain; None means unchanged."""
        return self.domains.get(domain, self.base)

    def __str__(self) -> str:
        return self.text or ",".join(filter(None, [str(self.number), self.argument]))


def parse_levels(spec: str, *, base: int | None = DEFAULT) -> Levels:
    """Parse a SPEC.

    Args:
        spec: Items separated by commas: a number from 0 to 4, `DOMAIN=LEVEL`, or one of PTT's
            names (`LEVEL_NONE`, `LEVEL_ALL`, `LEVEL_IO`, `LEVEL_MUTEX_ALL`, `LEVEL_COND_IO`, …).
        base: Level of the other domains if the SPEC has no number. With PTT's names, the other
            domains are off.

    Raises:
        UsageError: An item is not a level, or names no domain.

    Example:
        >>> parse_levels("mutex=3,cond=2").argument
        'mutex=3,cond=2'
        >>> parse_levels("LEVEL_MUTEX_ALL").number
        0
    """
    domains: dict[str, int] = {}
    named = False
    for item in (part.strip() for part in spec.split(",")):
        if item.upper().startswith("LEVEL_"):
            level = _ptt_name(item.upper(), domains)
            base = max(level, base or 0) if named else level
            named = True
        elif "=" in item:
            name, _, number = item.partition("=")
            domains[_domain(name.strip(), spec)] = _level(number.strip(), spec)
        else:
            base = _level(item, spec)
            named = True
    if named and spec.upper().startswith("LEVEL_") and base == 0 and domains:
        # A trace of one domain needs them to describe its processes.
        domains = {**dict.fromkeys(_ALWAYS, 1), **domains}
    return Levels(base, domains, spec.strip())


def _ptt_name(item: str, domains: dict[str, int]) -> int:
    """Apply one of PTT's names to `domains` and return the level of all others."""
    words = item.removeprefix("LEVEL_").split("_")
    if words == ["NONE"]:
        return 0
    if len(words) == 1 and words[0] in _PTT_LEVELS:
        return _PTT_LEVELS[words[0]]
    known = {name.upper(): name for name in DOMAINS}
    if len(words) == 2 and words[0] in known and words[1] in _PTT_LEVELS:  # noqa: PLR2004 -- X_ALL
        name = known[words[0]]
        domains[name] = max(_PTT_LEVELS[words[1]], domains.get(name, 0))
        return 0
    raise UsageError(
        f"unknown level {item!r}: expected LEVEL_NONE, LEVEL_ALL, LEVEL_IO, LEVEL_<X>_ALL or "
        f"LEVEL_<X>_IO with X one of {', '.join(known)}"
    )


def _domain(name: str, spec: str) -> str:
    if name.lower() not in DOMAINS:
        raise UsageError(
            f"unknown domain {name!r} in level {spec!r}: expected one of {', '.join(DOMAINS)}"
        )
    return name.lower()


def _level(text: str, spec: str) -> int:
    if text.isascii() and text.isdigit() and int(text) <= HIGHEST:
        return int(text)
    raise UsageError(
        f"{text!r} in level {spec!r} is not a level: expected 0 to {HIGHEST}, DOMAIN=LEVEL,… or "
        "one of PTT's LEVEL_ names"
    )
