"""Misuse: locks, conditions and threads that a program uses against their rules."""
