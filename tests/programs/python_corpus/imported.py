"""A module that another thread imports."""

import importlib
import os
import sys
import tempfile
import threading
import time

from witness import waits

with tempfile.TemporaryDirectory() as place:
    with open(os.path.join(place, "slowly.py"), "w") as file:
        file.write("import time\ntime.sleep(0.1)\n")
    sys.path.insert(0, place)
    thread = threading.Thread(target=importlib.import_module, args=("slowly",))
    thread.start()
    while "slowly" not in sys.modules:
        time.sleep(0.001)
    with waits("contended"): importlib.import_module("slowly")
    thread.join()
