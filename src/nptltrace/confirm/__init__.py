"""Runs programs again and holds threads back, until a suspicion of a trace is confirmed or not."""
