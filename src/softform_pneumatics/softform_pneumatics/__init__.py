"""Pneumatic boards: one family of devices of the driver."""
