"""Runs the Python files and installed packages that add findings and reports."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType

from nptltrace.errors import PttError, UsageError, one_line

__all__ = ["installed", "place_of", "run_script", "what_failed"]


def run_script(path: str | os.PathLike[str]) -> None:
    """Run a Python file of a user.

    Args:
        path: The file.

    Raises:
        UsageError: The file cannot be read or run; the message names the line.
    """
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    module = ModuleType(f"ptt_script_{Path(path).stem}")
    module.__file__ = str(path)
    # dataclasses and pickle look up classes in sys.modules.
    sys.modules[module.__name__] = module
    try:
        exec(compile(text, str(path), "exec"), module.__dict__)  # noqa: S102 -- the user's own
    except SyntaxError as error:
        line = f", line {error.lineno}" if error.filename == str(path) and error.lineno else ""
        raise UsageError(f"{path}{line}: {error.msg}") from None
    except (Exception, SystemExit) as error:  # noqa: BLE001 -- the user's code may raise anything
        raise UsageError(f"{place_of(error, str(path))}: {what_failed(error)}") from None


def installed(group: str) -> list[str]:
    """Import the modules that installed packages name as entry points.

    Args:
        group: The group of the entry points.

    Returns:
        A line for each entry point that cannot be imported: name, module and error.
    """
    if not _may_have(group):
        return []
    from importlib.metadata import entry_points

    wrong = []
    for entry in entry_points(group=group):
        try:
            entry.load()
        except (Exception, SystemExit) as error:  # noqa: BLE001 -- as above
            wrong.append(f"{entry.name} ({entry.value}): {what_failed(error)}")
    return wrong


def _may_have(group: str) -> bool:
    """Return whether an installed package may name entry points of a group.

    Most systems have none, and an import of `importlib.metadata` takes a tenth of `ptt check`.
    """
    finders = [finder for finder in sys.meta_path if hasattr(finder, "find_distributions")]
    if any(getattr(finder, "__name__", "") != "PathFinder" for finder in finders):
        return True
    wanted = f"[{group}]".encode()
    for place in sys.path:
        try:
            names = os.listdir(place or ".")  # noqa: PTH208 -- of many names
        except NotADirectoryError:
            return True  # an archive
        except OSError:
            continue
        for name in names:
            if name.lower().endswith((".dist-info", "egg-info")):
                try:
                    text = Path(place, name, "entry_points.txt").read_bytes()
                except OSError:
                    continue
                if wanted in text:
                    return True
    return False


def place_of(error: BaseException, path: str) -> str:
    """Return `FILE, line N` for the innermost line of a file in a traceback; else the file."""
    line, trace = 0, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == path:
            line = trace.tb_lineno
        trace = trace.tb_next
    return f"{path}, line {line}" if line else path


def what_failed(error: BaseException) -> str:
    """Return an error of a user's code on one line, with its class unless it is a `PttError`."""
    text = one_line(error)
    if isinstance(error, PttError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
