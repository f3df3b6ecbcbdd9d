"""Processes that run and core files: their threads, memory and modules."""
