"""analyzer.py - prints every event of a log with its data.

python3 analyzer.py shop.log
"""

import sys

from nptltrace import posix

with posix.open_log(sys.argv[1]) as log:
    for event in log:
        print(event.time_ns, event.pid, event.name, event.data.hex())
