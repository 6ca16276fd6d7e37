"""Streams of targets."""
