"""Pages generated from the parsers: manual pages and the reference."""
