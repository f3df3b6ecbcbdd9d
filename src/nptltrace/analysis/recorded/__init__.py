"""What a recording says of itself: the levels it was made at, and its clocks."""
