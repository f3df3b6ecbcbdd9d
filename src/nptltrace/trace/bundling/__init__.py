"""Puts names from a program's files into its trace, so that names survive the files."""
