"""What a recording is asked to do: options, detail levels, filters."""
