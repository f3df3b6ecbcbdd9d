"""Waits, holds and idle time by call stack."""
