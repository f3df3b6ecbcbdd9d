"""Identities of call sites and call stacks that are the same in all runs."""
