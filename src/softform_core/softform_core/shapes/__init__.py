"""Shapes to reach: reading, checking, making and writing them."""
