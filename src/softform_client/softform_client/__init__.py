"""Public API for planners, controllers and notebooks."""
