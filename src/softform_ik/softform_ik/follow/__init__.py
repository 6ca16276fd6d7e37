"""The action `follow_waypoints`."""
