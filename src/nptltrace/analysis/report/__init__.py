"""Reports of contention: figures, the critical path, differences between runs."""
