"""Commands for a stack that runs: thin shells around `ShapeClient`, with its words."""
