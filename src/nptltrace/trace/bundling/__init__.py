"""What of a program's files is put into its trace, so that names survive the files."""
