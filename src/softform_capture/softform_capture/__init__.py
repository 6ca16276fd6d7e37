"""Shape capture: scanner exports from a watched folder."""
