"""Who holds what a thread waits for, a module for each kind of lock or runtime."""
