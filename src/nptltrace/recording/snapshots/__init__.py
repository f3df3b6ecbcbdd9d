"""Snapshots of the flight recorder: who asks for them, and how they are made."""
