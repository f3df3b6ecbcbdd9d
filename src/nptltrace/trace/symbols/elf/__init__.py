"""ELF files and their debug information: where they are found, and the names in them."""
