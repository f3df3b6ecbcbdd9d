"""The settings of a recording: options, detail levels, filters."""
