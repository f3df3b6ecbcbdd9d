"""A snapshot that `ptt check` looks at: it stays only if it has a new finding."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from contextlib import suppress

from nptltrace._files import trace_directories
from nptltrace._files.directories import Directory
from nptltrace._files.whole import json_of
from nptltrace.errors import PttError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

__all__ = ["Candidate"]

# The check must not take a processor from the program.
_NICE = 19


class Candidate:
    """A snapshot under a hidden name, and the process that checks it.

    Args:
        path: The trace directory.
        began: When the snapshot began, as the caller measures it.

    Attributes:
        began: As passed.
    """

    def __init__(self, path: Path, began: float) -> None:
        self._path, self.began = path, began
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 -- closed with the result
        # In a new session, the check does not get the interrupts for the program.
        self._process = subprocess.Popen(
            [sys.executable, "-m", "nptltrace", "check", "--format", "json", "--", str(path)],
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, self._process.pid, _NICE)

    def result(self, *, wait: bool = False) -> dict[str, str] | None:
        """Return the message of each finding, by a text that identifies the finding.

        Args:
            wait: Whether to wait for the end of the check.

        Returns:
            None if the check goes on.
        """
        if wait:
            self._process.wait()
        elif self._process.poll() is None:
            return None
        with self._output as file:
            file.seek(0)
            text = file.read()
        try:
            findings = json_of(text)["findings"]
            return {_identity(finding): str(finding["message"]) for finding in findings}
        except (ValueError, KeyError, TypeError):
            return {}

    def keep(self, path: Path, finding: str) -> None:
        """Give the snapshot its name, and write the finding down in it.

        Raises:
            OSError: There is no room, or something has this name.
        """
        with Directory.open(self._path) as directory, directory.inside("info") as info:
            facts = json_of(info.read("session.json"))
            facts["snapshot"] = f"finding: {finding}"
            info.replace("session.json", json.dumps(facts, indent=1, ensure_ascii=False) + "\n")
        self._path.rename(path)

    def remove(self) -> None:
        """Remove the snapshot."""
        with suppress(PttError, OSError):
            trace_directories.remove(trace_directories.open_own(self._path), whole=True)


def _identity(finding: dict[str, Any]) -> str:
    """Return what a finding of one snapshot has in common with the same finding of another."""
    names = ("kind", "pid", "sites", "objects")
    return json.dumps([finding.get(name) for name in names])
