"""Files in directories that others may have prepared.

No link is followed, and nothing is removed that PTT did not make.
"""
