"""The trace-enabled thread library: the installed glibc, built again with trace points inside."""
