"""The action `capture_shape`."""
