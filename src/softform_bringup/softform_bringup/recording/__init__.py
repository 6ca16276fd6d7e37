"""Recording topics into bags, salvaging bags that were cut off, and replaying them."""
