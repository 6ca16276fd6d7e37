"""Pneumatic boards behind one interface; their wire formats are in docs/boards.md."""
