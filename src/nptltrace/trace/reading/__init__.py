"""Reads events as columns and batches, on several processors, also while a recording goes on."""
