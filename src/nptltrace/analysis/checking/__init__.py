"""What the checker saw in the events of a traceset: facts with names, cycles of lock orders."""
