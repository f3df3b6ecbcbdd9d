"""A WSGI application with requests that wait for one another."""

import threading
import time

lock = threading.Lock()


def answer():
    with lock:  # waits
        time.sleep(0.02)


def application(environ, start_response):
    answer()
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"done\n"]
