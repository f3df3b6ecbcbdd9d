"""Runs the viewer: a socket, its address on stdout, a browser, and the end at a signal."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import secrets
import signal
import socket
import sys
import tempfile
import time
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import uvicorn

from nptltrace import _paths
from nptltrace._binding import libc
from nptltrace.errors import NativeFilesMissing, UsageError
from nptltrace.ui.server.access import Access, is_any
from nptltrace.ui.server.app import application

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Protocol

    from starlette.types import ASGIApp

    from nptltrace.ui.viewer import Viewer

    class Served(Protocol):
        """The thing that a server serves."""

        looking: int

        @property
        def closed(self) -> bool:
            """Whether the server shall end."""

        def start(self) -> None:
            """Begin."""

        def stop(self) -> None:
            """Stop answering."""

        def close(self) -> None:
            """Release all resources."""


__all__ = ["kept_token", "serve", "viewer_application"]


# How long no page must be open before the viewer has no user. Pages reload, and browsers start.
_ALONE_S = 5.0
_POLL_S = 0.2
_ARENAS = 2


class _Server(uvicorn.Server):
    """A server that leaves signals to its caller."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Install no signal handlers."""
        yield


def serve(
    viewer: Served,
    app: ASGIApp,
    *,
    host: str,
    port: int,
    browser: bool,
    ready: Callable[[str], None],
    beside: bool = False,
    token: str | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM.

    Args:
        viewer: The viewer that answers; closed at the end.
        app: The application that asks the viewer.
        host: Address to bind to.
        port: Port to bind to, 0 for any port.
        browser: Whether to open a browser.
        ready: Called with the full address, token included, when it can be opened.
        beside: Whether to end, too, when stdin has ended and no page is open any more.
        token: The token; a new token by default.

    Raises:
        UsageError: The server cannot bind to the address.
    """
    # Each answer is made in a separate thread. With few arenas, the threads share freed memory.
    libc.few_arenas(_ARENAS)
    listening = _bind(host, port)
    try:
        port = listening.getsockname()[1]
        access = Access(app, host=host, port=port, token=token)
        config = uvicorn.Config(
            access, log_config=None, access_log=False, lifespan="off", ws="none",
            server_header=False, date_header=False, timeout_graceful_shutdown=1,
            timeout_keep_alive=60,
        )  # fmt: skip
        server = _Server(config)
        # At the end, unanswered questions are no errors to report.
        logging.getLogger("uvicorn.error").addFilter(lambda _: not viewer.closed)

        def stop(*_: Any) -> None:
            viewer.stop()
            server.should_exit = True

        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, stop)
        # The caller may have blocked the signals, as a recorder does.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})
        if beside:
            Thread(target=_leave, args=(viewer, stop), daemon=True).start()
        viewer.start()
        name = _reached(host)
        shown = f"[{name}]" if ":" in name else name
        url = f"http://{shown}:{port}/?token={access.token}"
        ready(url)
        with contextlib.ExitStack() as stack:
            if browser:
                _open_browser(stack.enter_context(_leading_to(url)))
            server.run([listening])
    finally:
        listening.close()
        viewer.close()


def kept_token(path: str) -> str:
    """Return the token of a file. If there is no file, make the file with a new token.

    Raises:
        UsageError: Other users can read the file, or the file holds no token.
    """
    file = Path(path)
    with contextlib.suppress(FileExistsError):
        file.touch(0o600, exist_ok=False)
        file.write_text(secrets.token_urlsafe(32) + "\n", encoding="ascii")
    if file.stat().st_mode & 0o077:
        raise UsageError(f"others can read {path}: chmod 600 it, or remove it to get a new token")
    token = file.read_text(encoding="utf-8", errors="replace").strip()
    if not re.fullmatch(r"[A-Za-z0-9_-]{32,}", token):
        raise UsageError(f"{path} is not a token file: at least 32 letters, digits, - or _")
    return token


def _leave(viewer: Served, stop: Callable[[], None]) -> None:
    """Stop when stdin has ended and no page is open any more."""
    with contextlib.suppress(OSError):
        while os.read(0, 4096):
            pass
    alone_since = time.monotonic()
    while not viewer.closed:
        if viewer.looking:
            alone_since = time.monotonic()
        elif time.monotonic() - alone_since > _ALONE_S:
            stop()
        time.sleep(_POLL_S)


def viewer_application(viewer: Viewer) -> ASGIApp:
    """Return the application of a viewer, with the page if it was built."""
    try:
        page = _paths.page_dir()
    except NativeFilesMissing:
        page = None
    return application(viewer, page)


def _bind(host: str, port: int) -> socket.socket:
    """Return a listening socket."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(128)
    except OSError as error:
        listening.close()
        raise UsageError(
            f"cannot listen at {host} port {port}: {error.strerror or error}"
        ) from None
    return listening


def _reached(host: str) -> str:
    """Return the address to print: if `host` is all addresses, the address for other machines."""
    if not is_any(host):
        return host
    # Nothing is sent. The kernel only chooses the source address for another network.
    others = {socket.AF_INET: "198.51.100.1", socket.AF_INET6: "2001:db8::1"}
    for family in others if ":" in host else (socket.AF_INET,):
        with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as asking:
            asking.connect((others[family], 9))
            return str(asking.getsockname()[0])
    return socket.gethostname()


@contextlib.contextmanager
def _leading_to(url: str) -> Iterator[str]:
    """Give the address of a file that leads to an address.

    Every user of the machine can read the command line of a browser, but not the file.
    """
    with tempfile.TemporaryDirectory(prefix="ptt-ui-") as place:
        path = Path(place) / "open.html"
        path.touch(0o600, exist_ok=False)
        path.write_text(f'<meta http-equiv="refresh" content="0; url={url}">', encoding="utf-8")
        yield path.as_uri()


def _open_browser(url: str) -> None:
    """Open a browser if there is a display. The output of the browser is discarded."""
    import webbrowser

    if not any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")):
        return
    saved = os.dup(1)
    try:
        sys.stdout.flush()
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.close(null)
        with contextlib.suppress(webbrowser.Error):
            webbrowser.open(url)
    finally:
        os.dup2(saved, 1)
        os.close(saved)
