"""Runs `ptt` commands as forks of a process that has imported the package already.

On a small trace, imports take most of the time of a command. A fork skips the imports. It still is
a process with its own streams, environment, directory and exit status.

Tests use `ForkServer`. Run as a program, this file is the process that forks.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import pkgutil
import selectors
import signal
import socket
import subprocess
import sys
import time
import warnings
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["ForkServer"]

# The interpreter and the libraries read these variables when they start.
_READ_AT_START = ("PYTHON", "LC_", "LANG", "LD_", "TZ", "GLIBC_", "MALLOC_", "OPENBLAS_", "ARROW_")
_PIPE_SIZE = 65_536  # bytes that a pipe holds before a reader takes them
# No command imports the first four at its start. Spark starts threads, and few tests need it.
_NOT_IMPORTED = frozenset(
    f"nptltrace.{name}" for name in ("__main__", "here", "posix", "pytest_plugin", "fleet.spark")
)


class ForkServer:
    """A process that has imported the package, and forks for each command.

    Args:
        environment: The environment of the process.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._start = _start_variables(environment)
        self._socket, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())],
                env={**environment, "OPENBLAS_NUM_THREADS": "1"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                pass_fds=[theirs.fileno()],
            )

    def serves(self, environment: Mapping[str, str], stdin: str) -> bool:
        """Return whether a fork can stand for a new process with that environment and input."""
        return _start_variables(environment) == self._start and len(stdin) * 4 < _PIPE_SIZE

    def run(
        self, args: Sequence[str], env: Mapping[str, str], cwd: str, stdin: str, timeout: float
    ) -> tuple[int, str, str]:
        """Run `ptt ARGS` and return its exit status, its output and its errors.

        Args:
            args: The arguments.
            env: The environment of the command.
            cwd: The directory of the command.
            stdin: Text for its standard input.
            timeout: Seconds after which the command is killed.

        Raises:
            subprocess.TimeoutExpired: The command was killed.
        """
        (stdin_end, stdin_write), (stdout, stdout_end), (stderr, stderr_end) = (
            os.pipe(), os.pipe(), os.pipe()
        )  # fmt: skip
        replies, reply_end = os.pipe()
        os.write(stdin_write, stdin.encode())
        os.close(stdin_write)
        request = json.dumps({"args": [*args], "env": {**env}, "cwd": cwd}).encode(
            errors="surrogateescape"
        )
        ends = [stdin_end, stdout_end, stderr_end, reply_end]
        socket.send_fds(self._socket, [len(request).to_bytes(4, "little")], ends)
        self._socket.sendall(request)
        for end in ends:
            os.close(end)
        try:
            texts = _read_all([replies, stdout, stderr], time.monotonic() + timeout)
        except TimeoutError:
            raise subprocess.TimeoutExpired(["ptt", *args], timeout) from None
        finally:
            for end in (replies, stdout, stderr):
                os.close(end)
        _, status = texts[0].split()
        return int(status), _text(texts[1]), _text(texts[2])


def _start_variables(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(_READ_AT_START)}


def _text(written: bytes) -> str:
    """Return text with plain line ends, as `subprocess` does."""
    return written.decode().replace("\r\n", "\n").replace("\r", "\n")


def _read_all(ends: Sequence[int], deadline: float) -> list[bytes]:
    """Read pipes until all their writers have closed them.

    The first pipe brings the process id. At the deadline that process is killed.

    Raises:
        TimeoutError: The deadline has come.
    """
    parts: dict[int, list[bytes]] = {end: [] for end in ends}
    with selectors.DefaultSelector() as selector:
        for end in ends:
            selector.register(end, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(max(deadline - time.monotonic(), 0))
            if not ready:
                pid = b"".join(parts[ends[0]]).split()
                if pid:
                    os.kill(int(pid[0]), signal.SIGKILL)
                raise TimeoutError
            for key, _ in ready:
                part = os.read(key.fd, _PIPE_SIZE)
                parts[key.fd].append(part)
                if not part:
                    selector.unregister(key.fd)
    return [b"".join(parts[end]) for end in ends]


def _import_everything() -> None:
    """Import the modules that commands use."""
    import nptltrace
    from nptltrace.cli.imports import import_late

    import_late()
    for module in pkgutil.walk_packages(nptltrace.__path__, "nptltrace."):
        if module.name not in _NOT_IMPORTED:
            try:
                importlib.import_module(module.name)
            except ModuleNotFoundError:
                continue  # a command that needs the missing library reports it
    for name in ("inspect", "typing", "numpy", "pyarrow", "pyarrow.compute", "duckdb"):
        with contextlib.suppress(ModuleNotFoundError):
            _ = importlib.import_module(name).__file__  # a stand-in imports its module now


def _become(request: Mapping[str, Any], streams: Sequence[int]) -> NoReturn:
    """Turn a forked process into `ptt`."""
    try:
        for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
            os.dup2(streams[number], number)
            like, buffering = getattr(sys, name), 1 if name == "stderr" else -1
            made = open(number, mode, buffering, like.encoding, like.errors, closefd=False)  # noqa: SIM115
            setattr(sys, name, made)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        os.environ.clear()
        os.environ.update(request["env"])
        os.chdir(request["cwd"])
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.set_wakeup_fd(-1)
        import nptltrace.__main__ as program

        sys.argv = [program.__file__ or "", *request["args"]]
        program.entry()
    except BaseException:  # noqa: BLE001 -- as the interpreter does at its end
        sys.excepthook(*sys.exc_info())
    os._exit(1)


def _receive(requests: socket.socket) -> tuple[Any, list[int]] | None:
    """Return a request with its file descriptors, or None after the end of the tests."""
    head, descriptors, _, _ = socket.recv_fds(requests, 4, 4)
    if not head:
        return None
    size = int.from_bytes(head, "little")
    return json.loads(requests.recv(size, socket.MSG_WAITALL)), descriptors


def _serve(requests: socket.socket) -> None:
    """Fork for each request. Reply with the process id at once, and with the exit status later."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.collect()
    gc.freeze()
    with selectors.DefaultSelector() as selector:
        selector.register(requests, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.data is not None:
                    pid, reply = key.data
                    selector.unregister(key.fd)
                    os.close(key.fd)
                    _, status = os.waitpid(pid, 0)
                    with contextlib.suppress(BrokenPipeError):  # nobody waits for the process
                        os.write(reply, b"%d" % os.waitstatus_to_exitcode(status))
                    os.close(reply)
                    continue
                received = _receive(requests)
                if received is None:
                    return
                request, (*streams, reply) = received
                with warnings.catch_warnings():
                    # Libraries have threads already, but at rest these threads hold no lock.
                    warnings.simplefilter("ignore", DeprecationWarning)
                    pid = os.fork()
                if pid == 0:
                    _become(request, streams)
                for stream in streams:
                    os.close(stream)
                os.write(reply, b"%d " % pid)
                selector.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, reply))


if __name__ == "__main__":
    _import_everything()
    _serve(socket.socket(fileno=int(sys.argv[1])))
