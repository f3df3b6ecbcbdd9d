"""A thread calls C for long, while another thread wants to go on after each short sleep."""

import threading
import time

numbers = [n * 7919 % 400_009 for n in range(400_000)]
done = threading.Event()


def compute():
    for _ in range(5):
        sorted(numbers)  # computes
    done.set()


def answer():
    while not done.is_set():
        time.sleep(0.001)  # answers


threads = [threading.Thread(target=answer), threading.Thread(target=compute)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
