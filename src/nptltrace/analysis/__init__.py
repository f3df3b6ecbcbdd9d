"""What is derived from a trace: states of threads and objects, contention, critical path."""
