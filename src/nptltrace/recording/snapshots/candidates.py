"""A snapshot that `ptt check` looks at: it stays only if it has a new finding."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from contextlib import ExitStack, suppress

from nptltrace import _paths
from nptltrace._files import trace_directories
from nptltrace._files.directories import Directory
from nptltrace._files.whole import json_of
from nptltrace.errors import PttError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any, BinaryIO

__all__ = ["Candidate"]

# The check must not take a processor from the program.
_NICE = 19


class Candidate:
    """A snapshot under a hidden name, and the process that checks it.

    Args:
        trace: The trace directory of the recording, with the snapshot at `candidate_of` it.
        began: When the snapshot began, as the caller measures it.

    Attributes:
        began: As passed.

    Raises:
        PttError: The check cannot be started. The snapshot is removed.
    """

    def __init__(self, trace: Path, began: float) -> None:
        self._trace, self.began = trace, began
        path = trace_directories.candidate_of(trace)
        try:
            with ExitStack() as files:
                self._output = files.enter_context(tempfile.TemporaryFile())
                self._errors = files.enter_context(tempfile.TemporaryFile())
                # In a new session, the check does not get the interrupts for the program.
                self._process = subprocess.Popen(
                    _paths.ptt_command("check", "--format", "json", "--", str(path)),
                    stdin=subprocess.DEVNULL,
                    stdout=self._output,
                    stderr=self._errors,
                    start_new_session=True,
                )
                self._files = files.pop_all()
        except OSError as error:
            self.remove()
            raise PttError(f"cannot check it: {error.strerror}") from None
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, self._process.pid, _NICE)

    def result(self) -> dict[str, str] | PttError | None:
        """Return the message of each finding, by a text that identifies the finding.

        Returns:
            None if the check goes on, an error if the check failed.
        """
        status = self._process.poll()
        if status is None:
            return None
        with self._files:
            text, errors = _contents(self._output), _contents(self._errors)
        try:
            # The exit status tells less: it is 2 if only a finding of the user's own fails.
            findings = json_of(text)["findings"]
            return {_identity(finding): str(finding["message"]) for finding in findings}
        except (ValueError, KeyError, TypeError):
            lines = errors.decode(errors="replace").splitlines()
            why = lines[-1].removeprefix("ptt: ") if lines else f"exit status {status}"
            return PttError(f"ptt check failed: {why}")

    def stop(self) -> None:
        """End the check, and remove the snapshot."""
        self._process.kill()
        self._process.wait()
        self._files.close()
        self.remove()

    def keep(self, path: Path, finding: str) -> None:
        """Give the snapshot its name, and write the finding down in it.

        Raises:
            OSError: There is no room, or something has this name.
            PttError, ValueError: Somebody has put something else in the place of the snapshot.
        """
        own = trace_directories.candidate_of(self._trace)
        with Directory.open(own) as directory, directory.inside("info") as info:
            facts = json_of(info.read("session.json"))
            facts["snapshot"] = f"finding: {finding}"
            info.replace("session.json", json.dumps(facts, indent=1, ensure_ascii=False) + "\n")
        own.rename(path)

    def remove(self) -> None:
        """Remove the snapshot."""
        trace_directories.remove_candidate(self._trace)


def _contents(file: BinaryIO) -> bytes:
    """Return the contents of a file from its begin."""
    file.seek(0)
    return file.read()


def _identity(finding: dict[str, Any]) -> str:
    """Return what a finding of one snapshot has in common with the same finding of another."""
    names = ("kind", "pid", "sites", "objects")
    return json.dumps([finding.get(name) for name in names])
