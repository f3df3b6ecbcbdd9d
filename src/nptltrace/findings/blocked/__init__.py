"""Blocked for ever: threads that nobody lets go on, or that can come to that."""
