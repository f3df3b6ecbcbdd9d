"""Blocked for ever: threads that can never continue, or that may come to that."""
