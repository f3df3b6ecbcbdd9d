"""Parts that several formats use: timelines, stacks, lines of text and protocol buffers."""
