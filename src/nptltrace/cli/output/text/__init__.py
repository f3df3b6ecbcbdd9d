"""What commands print as text, in lines as wide as the terminal."""
