"""Pages made from the parsers: manual pages and the reference."""
