"""Runs the viewer: a socket, its address on stdout, a browser, and an end when a signal says so."""

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
        """What a server answers for."""

        looking: int

        @property
        def closed(self) -> bool:
            """Whether it ends."""

        def start(self) -> None:
            """Begin."""

        def stop(self) -> None:
            """Answer nothing any more."""

        def close(self) -> None:
            """Give everything back."""


__all__ = ["kept_token", "serve", "viewer_application"]


# How long no page is open before nobody is said to look: pages are loaded anew, browsers start.
_ALONE_S = 5.0
_POLL_S = 0.2
_ARENAS = 2


class _Server(uvicorn.Server):
    """A server that leaves signals to its caller."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take no signals over."""
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
        viewer: Answers; it is closed at the end.
        app: The application that asks it.
        host: Address to bind to.
        port: Port to bind to, 0 for any.
        browser: Whether to open one.
        ready: Called with the full address, token included, when it can be opened.
        beside: Whether to end, too, when stdin has ended and no page is open any more.
        token: The token; a new one by default.

    Raises:
        UsageError: The address cannot be bound to.
    """
    # Each answer is made in a thread of its own: the threads share what they free.
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
        # Whose question is not answered in time when it ends is no news.
        logging.getLogger("uvicorn.error").addFilter(lambda _: not viewer.closed)

        def stop(*_: Any) -> None:
            viewer.stop()
            server.should_exit = True

        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, stop)
        # Its caller may have them blocked, as a recorder has.
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
    """Return the token that a file has; where there is no file it is made, with a new one.

    Raises:
        UsageError: Others can read it, or it holds no token.
    """
    file = Path(path)
    with contextlib.suppress(FileExistsError):
        file.touch(0o600, exist_ok=False)
        file.write_text(secrets.token_urlsafe(32) + "\n", encoding="ascii")
    if file.stat().st_mode & 0o077:
        raise UsageError(f"others can read {path}: chmod 600 it, or remove it for a new token")
    token = file.read_text(encoding="utf-8", errors="replace").strip()
    if not re.fullmatch(r"[A-Za-z0-9_-]{32,}", token):
        raise UsageError(f"{path} is no token file: 32 letters, digits, - and _ at least")
    return token


def _leave(viewer: Served, stop: Callable[[], None]) -> None:
    """Stop when stdin has ended and nobody looks any more."""
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
    """Return a socket that listens."""
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
    """Return an address that others reach this machine by, where it listens at all of them."""
    if not is_any(host):
        return host
    # Nothing is sent: the kernel says by which address it would go to another network.
    others = {socket.AF_INET: "198.51.100.1", socket.AF_INET6: "2001:db8::1"}
    for family in others if ":" in host else (socket.AF_INET,):
        with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as asking:
            asking.connect((others[family], 9))
            return str(asking.getsockname()[0])
    return socket.gethostname()


@contextlib.contextmanager
def _leading_to(url: str) -> Iterator[str]:
    """Give the address of a file that leads to an address.

    What stands on a browser's command line can be read by every user of the machine; the file can
    not.
    """
    with tempfile.TemporaryDirectory(prefix="ptt-ui-") as place:
        path = Path(place) / "open.html"
        path.touch(0o600, exist_ok=False)
        path.write_text(f'<meta http-equiv="refresh" content="0; url={url}">', encoding="utf-8")
        yield path.as_uri()


def _open_browser(url: str) -> None:
    """Open a browser if there is a display; what it says goes nowhere."""
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
