"""Time: locks that are held, or waited for, longer than need be."""
