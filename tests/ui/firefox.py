"""The system's Firefox, driven through WebDriver BiDi: opens pages, evaluates, takes pictures."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import time
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from websockets.sync.client import ClientConnection

__all__ = ["FIREFOX", "Firefox", "running"]

FIREFOX = "/usr/bin/firefox-esr"
PATIENCE_S = 120
_LISTENS = re.compile(r"WebDriver BiDi listening on (ws://\S+)\s")


class Firefox:
    """A tab of a running Firefox.

    Args:
        socket: A connection to the remote agent of Firefox.
    """

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._numbers = count(1)
        self.errors: list[str] = []
        self._ask("session.new", {"capabilities": {}})
        self._ask("session.subscribe", {"events": ["log.entryAdded"]})
        tree = self._ask("browsingContext.getTree", {})
        self._tab = tree["contexts"][0]["context"]

    def _ask(self, method: str, parameters: dict[str, Any]) -> Any:
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            answer = json.loads(self._socket.recv(PATIENCE_S))
            if answer.get("method") == "log.entryAdded" and answer["params"]["level"] == "error":
                self.errors.append(str(answer["params"]["text"]))
            if answer.get("id") == number:
                assert answer["type"] == "success", answer
                return answer["result"]

    def go(self, url: str) -> None:
        """Open an address."""
        self._ask(
            "browsingContext.navigate", {"context": self._tab, "url": url, "wait": "complete"}
        )

    def evaluate(self, script: str) -> Any:
        """Return a string, number or truth value of the page."""
        found = self._ask(
            "script.evaluate",
            {"expression": script, "target": {"context": self._tab}, "awaitPromise": True},
        )
        assert found["type"] == "success", found
        return found["result"].get("value")

    def wait_for(self, script: str) -> None:
        """Wait until a condition of the page holds."""
        end = time.monotonic() + PATIENCE_S
        while not self.evaluate(script):
            assert time.monotonic() < end, script
            time.sleep(0.05)

    def press(self, key: str) -> None:
        """Press and release a key."""
        steps = [{"type": kind, "value": key} for kind in ("keyDown", "keyUp")]
        actions = [{"type": "key", "id": "keyboard", "actions": steps}]
        self._ask("input.performActions", {"context": self._tab, "actions": actions})

    def shot(self, path: Path) -> None:
        """Keep a picture."""
        found = self._ask("browsingContext.captureScreenshot", {"context": self._tab})
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(found["data"]))


@contextmanager
def running(profile: Path) -> Iterator[Firefox]:
    """Start Firefox without a window, with a new profile."""
    from websockets.sync.client import connect

    profile.mkdir()
    command: list[str | Path] = [FIREFOX, "--headless", "--no-remote", "--profile", profile]
    command += ["--width", "1400", "--height", "900", "--remote-debugging-port", "0", "about:blank"]
    # Firefox writes more than a pipe holds, and nobody would read the pipe.
    message = profile / "said"
    with message.open("wb") as file, subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=file,
        env={"HOME": str(profile), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
    ) as browser:  # fmt: skip
        try:
            while not (found := _LISTENS.search(message.read_text(errors="replace"))):
                assert browser.poll() is None, "Firefox ended"
                time.sleep(0.05)
            url = f"{found[1]}/session"
            # Firefox may answer late. It must not lose the connection for that.
            with connect(url, max_size=None, open_timeout=PATIENCE_S, ping_interval=None) as socket:
                yield Firefox(socket)
        finally:
            browser.terminate()
            try:
                browser.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                browser.kill()  # no test is about the end of Firefox
