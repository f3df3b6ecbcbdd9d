"""Records programs of the corpus, checks the traces, and compares findings with planted bugs."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.corpus.programs import OF_TIME, run

if TYPE_CHECKING:
    from pathlib import Path

    from tests.corpus.programs import Build, Came, Program
    from tests.support import Ptt

__all__ = ["Checked", "Checker", "check"]

Finding = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of `ptt check` on a recorded program.

    Attributes:
        program: The program.
        came: The result of its run.
        status: The exit status of `ptt check`.
        findings: The findings of its JSON output.
    """

    program: Program
    came: Came
    status: int
    findings: list[Finding]

    def brief(self) -> str:
        """Return the findings as text."""
        return "\n".join(f"{item['kind']}: {item['message']}" for item in self.findings)

    def as_planted(self) -> list[Finding]:
        """Return the findings with the planted kind, threads, objects and lines."""
        expected, came, source = self.program.expected, self.came, self.program.source
        assert expected
        threads = {came.threads[name] for name in expected.threads}
        objects = {came.objects[name] for name in expected.objects}
        sites = [site for item in self.findings for site in item["sites"]]
        lines = [f"({source.name}:{line})" for line in expected.lines]
        if source.suffix == ".cc" and not any(f"({source.name}:" in site for site in sites):
            lines = []  # the compiler inlined the calls from headers of the library
        return [
            item
            for item in self.findings
            if item["kind"] in expected.kinds
            and threads <= set(item["threads"])
            and objects <= set(item["objects"])
            and all(any(line in site for site in item["sites"]) for line in lines)
        ]

    def besides(self) -> list[Finding]:
        """Return the findings of kinds that are not planted."""
        expected = self.program.expected
        right = {*self.program.also, *(expected.kinds if expected else ())}
        return [item for item in self.findings if item["kind"] not in right]


@dataclass(frozen=True, slots=True)
class Checker:
    """Records programs and checks the traces.

    Attributes:
        ptt: Runs `ptt record`.
        build: The compiled programs.
        directory: The directory for the traces.
    """

    ptt: Ptt
    build: Build
    directory: Path

    def __call__(self, program: Program, *options: str) -> Checked:
        """Record a program with these options of `ptt record`, and check the trace."""
        trace = self.directory / "run.ptt"
        path = str(self.build(program))
        how = *program.recording, *options
        command = self.ptt.command("record", "-q", "--force", "-o", trace, *how, "--", path)
        came = run(program, command, env=self.ptt.environment())
        assert not came.late, f"{program.name} neither ends nor comes to rest"
        if came.status != program.status:
            return Checked(program, came, -1, [])
        left_out = (f"--ignore={kind}" for kind in sorted(OF_TIME))
        status, findings = check(trace, *left_out, *program.options)
        shutil.rmtree(trace)
        return Checked(program, came, status, findings)


def check(trace: Path, *options: str) -> tuple[int, list[Finding]]:
    """Return exit status and findings of `ptt check`; run in this process, it starts faster."""
    from nptltrace.cli import main

    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        status = main(["check", "--format", "json", *options, str(trace)])
    return status, json.loads(out.getvalue())["findings"]
