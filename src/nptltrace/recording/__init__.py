"""Recording: starts programs with the tracer, drains their buffers, recovers killed recordings.

No module here imports NumPy or pyarrow, so that a recording starts fast.
"""
