"""The entry point of `ptt` and of `python -m nptltrace`."""

from __future__ import annotations

# `_signal` is built in. During an import of `signal`, an interrupt would show a traceback.
import _signal  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def entry() -> NoReturn:
    """Run `ptt`. An interrupt while modules are imported ends the process without a message."""
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    from nptltrace.cli import entry as run

    run()


if __name__ == "__main__":
    entry()
