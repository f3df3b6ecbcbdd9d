"""What the viewer answers: one module a kind of question."""
