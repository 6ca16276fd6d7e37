"""A body of which only data are known."""
