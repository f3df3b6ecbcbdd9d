"""What is made of a trace: states of threads and objects, contention, critical path."""
