"""controller.py - traces a process into a log until its own input ends.

python3 controller.py $(pidof shop) shop.log
"""

import sys

from nptltrace import posix

with posix.create(int(sys.argv[1]), log=sys.argv[2]) as stream:
    stream.start()
    print("tracing", flush=True)
    sys.stdin.read()
