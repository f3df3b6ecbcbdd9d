"""Tables of a trace, and SQL over them."""
