"""What the C headers declare, a module each; see `tools/bind_headers.py`."""
