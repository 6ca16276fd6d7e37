"""Pneumatic boards, the driver that is safe with air, and its node."""
