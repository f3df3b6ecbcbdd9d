"""A lock in a module in an archive."""

import os
import sys
import tempfile
import threading
import zipfile

with tempfile.TemporaryDirectory() as place:
    path = os.path.join(place, "packed.zip")
    with zipfile.ZipFile(path, "w") as archive:
        text = "from witness import keep, waits\n\n\ndef take(lock):\n    keep(lock)\n"
        archive.writestr("packed.py", text + "    with waits('contended'): lock.acquire()\n")
    sys.path.insert(0, path)
    import packed

    packed.take(threading.Lock())
