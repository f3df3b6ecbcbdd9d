"""Watches processes from outside at a low rate, and tells when they hang."""
