"""States of threads and objects, contention and the critical path, derived from a trace."""
