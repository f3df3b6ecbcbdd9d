"""A server of CPython: threads take connections from a queue and answer lines."""

from __future__ import annotations

import queue
import socket
import sys
import threading

waiting: queue.Queue[socket.socket] = queue.Queue()
lock = threading.Lock()
answered = 0


def serve() -> None:
    """Answer the lines of one connection after the other."""
    global answered  # noqa: PLW0603 -- all threads count together
    while True:
        with waiting.get() as connection, connection.makefile("rwb") as stream:
            for line in stream:
                with lock:
                    answered += 1
                stream.write(line)
                stream.flush()


for _ in range(8):
    threading.Thread(target=serve, daemon=True).start()
with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as listener:
    while True:
        waiting.put(listener.accept()[0])
