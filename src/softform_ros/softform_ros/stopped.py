"""How the driver says that it is at fault because somebody stopped it."""

from collections.abc import Sequence

STOPPED = "stopped by request"
"""Begins the reason of a stop; one of an earlier life of the driver is told behind other words."""


def is_stopped(faults: Sequence[str]) -> bool:
    """Return whether all faults that the driver tells are stops by request."""
    return len(faults) > 0 and all(STOPPED in fault for fault in faults)
