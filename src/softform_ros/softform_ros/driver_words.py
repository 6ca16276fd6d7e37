"""Words of the driver: its states, and how it says that it is at fault because somebody stopped it."""

from collections.abc import Sequence

STOPPED = "stopped by request"
"""Begins the reason of a stop; one of an earlier life of the driver is told behind other words."""

_STATES = "safe", "running", "fault", "offline", "holding", "making safe"
"""Of each state of `DriverState.msg`, by its number."""


def state_word(state: int) -> str:
    """Return what people read for a state of `DriverState.msg`."""
    return _STATES[state] if state < len(_STATES) else f"in state {state}"


def is_stopped(faults: Sequence[str]) -> bool:
    """Return whether all faults that the driver tells are stops by request."""
    return len(faults) > 0 and all(STOPPED in fault for fault in faults)
