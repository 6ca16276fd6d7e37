"""Captured frames for learning."""
