"""OpenPneu driver: protocol, safety and node."""
