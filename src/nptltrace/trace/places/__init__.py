"""Places in code as a trace has them: numbers of call sites, modules, code objects of Python."""
