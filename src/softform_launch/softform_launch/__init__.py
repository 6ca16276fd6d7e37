"""Runs launch files."""
