"""Recording what runs already: what `ptt attach` does."""
