"""Asks a server until its input ends; prints how many requests there were, errors, latencies."""

from __future__ import annotations

import json
import select
import socket
import sys
import threading
import time

# The request and the expected answer, by kind of server.
ASKED = {
    "redis": (b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\nb\r\n", b"+OK\r\n"),
    "memcached": (b"set a 0 0 1\r\nb\r\n", b"STORED\r\n"),
    "nginx": (b"GET /file HTTP/1.1\r\nHost: a\r\n\r\n", b"HTTP/1.1 200 OK\r\n"),
    "echo": (b"a line\n", b"a line\n"),
}
FILE_SIZE = 70_000  # of the file that clients ask nginx for


def ask(kind: str, port: int, over: threading.Event, taken: list[float], wrong: list[str]) -> None:
    """Ask over one connection."""
    asked, expected = ASKED[kind]
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        while not over.is_set():
            begin = time.perf_counter()
            try:
                connection.sendall(asked)
                answer = connection.recv(1 << 17)
                while kind == "nginx" and len(answer.partition(b"\r\n\r\n")[2]) < FILE_SIZE:
                    answer += connection.recv(1 << 17)
            except OSError as error:
                wrong.append(str(error))
                return
            taken.append(time.perf_counter() - begin)
            if not answer.startswith(expected):
                wrong.append(repr(answer[:80]))
                return
            time.sleep(0.001)


def main() -> None:
    """Ask over four connections until the input ends."""
    kind, port = sys.argv[1], int(sys.argv[2])
    over = threading.Event()
    taken: list[float] = []
    wrong: list[str] = []
    threads = [
        threading.Thread(target=ask, args=(kind, port, over, taken, wrong)) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    select.select([sys.stdin], [], [])
    over.set()
    for thread in threads:
        thread.join()
    taken.sort()
    p50, p99, most = (
        1e3 * taken[int(len(taken) * part)] if taken else 0 for part in (0.5, 0.99, 0.99999)
    )
    json.dump({"requests": len(taken), "wrong": wrong, "ms": [p50, p99, most]}, sys.stdout)


main()
