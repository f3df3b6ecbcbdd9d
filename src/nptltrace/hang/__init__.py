"""Shows from outside why the threads of an untraced process wait."""
