"""Files in directories that other users may have prepared.

PTT follows no link there, and removes only files that it made.
"""
