"""The vocabulary of JSON documents, tables and exports: one name for a thing, with one type."""
