"""Running processes and core files: their threads, memory and modules."""
