"""The robot as goals and streams see it: driver, captures, and who commands."""
