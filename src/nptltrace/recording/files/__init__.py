"""The directories of a recording: the session in shared memory, and the trace."""
