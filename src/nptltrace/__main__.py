"""Lets `python -m nptltrace` stand for `ptt`, and is where both begin."""

from __future__ import annotations

# Built in: to import `signal` takes a while, in which an interrupt would show a traceback.
import _signal  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def entry() -> NoReturn:
    """Run `ptt`. An interrupt while modules are still imported ends it at once, in silence."""
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    from nptltrace.cli import entry as run

    run()


if __name__ == "__main__":
    entry()
