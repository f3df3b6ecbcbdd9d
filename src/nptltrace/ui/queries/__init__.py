"""The answers of the viewer: one module for each kind of question."""
