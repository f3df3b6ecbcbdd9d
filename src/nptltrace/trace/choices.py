"""How Python callers choose parts of a trace: one value or several, as tables contain them."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from typing import TYPE_CHECKING, Any, SupportsIndex

from nptltrace.errors import UsageError
from nptltrace.trace.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Callable

    from nptltrace.trace.objects.chosen import Chosen
    from nptltrace.trace.traceset import Traceset

__all__ = ["Choice", "plain", "selection_of"]

# One value, or several: any of them matches. They are process ids, thread ids, names or addresses.
# Columns of Arrow, NumPy and pandas are accepted too.
Choice = SupportsIndex | str | Iterable[SupportsIndex | str] | None


def plain(value: Any) -> Any:
    """Return a value of Arrow or NumPy as a value of Python; any other value as it is."""
    for convert in ("as_py", "item"):
        if hasattr(value, convert) and not hasattr(value, "__len__"):
            return getattr(value, convert)()
    return value


def selection_of(
    pid: Choice, tid: Choice, object_: Choice, site: Choice,
    generation: Callable[[Traceset, int, int], list[Chosen]],
) -> Selection:  # fmt: skip
    """Return what these choices select.

    Args:
        pid: Process ids.
        tid: Thread ids.
        object_: Addresses or names of objects.
        site: Addresses or names of call sites.
        generation: As the attribute of the selection.

    Raises:
        UsageError: A value is neither a number nor text.
    """
    return Selection(
        pids=_option("pid", pid, str),
        tids=_option("tid", tid, str),
        objects=_option("object", object_, hex),
        sites=_option("site", site, hex),
        generation=generation,
    )


def _option(name: str, choice: Choice, number: Any) -> list[str]:
    """Return the values of one option, as the command line writes them."""
    if choice is None:
        return []
    single = isinstance(plain(choice), Integral | str)
    values = [plain(value) for value in ([choice] if single else choice)]  # type: ignore[union-attr]
    for value in values:
        if not isinstance(value, Integral | str):
            raise UsageError(f"{name} takes numbers or text, not {value!r}")
    if not values:
        raise UsageError(f"{name} is an empty list; leave it out to choose everything")
    return [",".join(v if isinstance(v, str) else number(int(v)) for v in values)]
