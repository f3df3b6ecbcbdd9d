"""The trace-enabled thread library: the installed glibc, built so that its insides speak."""
