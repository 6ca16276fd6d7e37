"""The action `plan_to_shape`."""
