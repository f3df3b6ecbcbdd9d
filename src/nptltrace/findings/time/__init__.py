"""Time: locks that threads hold, or wait for, longer than necessary."""
