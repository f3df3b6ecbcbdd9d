"""What formats share: what they draw, stacks, and how lines and messages are written."""
