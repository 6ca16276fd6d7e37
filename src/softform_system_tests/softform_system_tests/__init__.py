"""Fault injection, soak and fuzzing."""
