"""Finds ELF files and their debug information, and the names in them."""
