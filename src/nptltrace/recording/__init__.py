"""Recording: starts programs with the tracer, drains their buffers, finishes what was left behind.

Nothing here imports a column library, so that a recording starts fast.
"""
