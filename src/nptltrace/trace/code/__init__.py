"""Code at addresses of a process: call sites, modules, functions of Python and Java."""
