"""The C libraries of PTT as Python uses them: one module a library, all of it built alike.

`headers` holds what the C headers declare, generated from them by `tools/bind_headers.py`.
`library` loads a library and turns a status into an exception; `handle` says when what it returns
ends. On top of these stands one module a library, named after its file, with a class for each kind
of handle.

Only `arrays` and the modules that give out tables import NumPy: recording has to start without it.
"""
