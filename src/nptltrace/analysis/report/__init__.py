"""Contention and what follows from it: figures, critical path, differences between runs."""
