"""What the threads of a process that was never traced wait for: looked at from outside."""
