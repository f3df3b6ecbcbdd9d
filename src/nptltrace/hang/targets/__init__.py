"""What is looked at: a process that runs or a core file, its threads, memory and modules."""
