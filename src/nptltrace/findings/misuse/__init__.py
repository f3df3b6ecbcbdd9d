"""Misuse: locks, conditions and threads, used against their rules."""
