"""The action `reach_shape`."""
