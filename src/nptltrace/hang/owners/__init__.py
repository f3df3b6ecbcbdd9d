"""The owners of the objects that threads wait for: a module for each kind of lock or runtime."""
