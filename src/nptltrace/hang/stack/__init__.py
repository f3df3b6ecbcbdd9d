"""The stacks of sleeping threads, unwound from outside, with names for C and Python."""
