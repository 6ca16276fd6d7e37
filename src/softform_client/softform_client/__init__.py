"""What planners, controllers and notebooks import."""
