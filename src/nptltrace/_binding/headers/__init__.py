"""The declarations of the C headers, a module each; see `tools/bind_headers.py`."""
