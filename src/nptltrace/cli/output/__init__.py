"""What commands print: text as wide as the terminal, screens, progress."""
