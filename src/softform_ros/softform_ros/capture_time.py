"""Times of capture that can be believed."""

import time

from softform_core.errors import SoftformError

CLOCK_TOLERANCE = 1.0
"""Largest lead of a capture time over this clock, s; beyond it the scanner's clock is wrong."""


def check_capture_time(captured_at: float, what: str) -> None:
    """Reject a time, s since the epoch, at which `what` cannot have been captured.

    Raises:
        SoftformError: If it is no time, or lies in the future.
    """
    if not captured_at > 0.0:
        raise SoftformError(f"The capture time {captured_at} of {what} is not a time.", "Stamp it when it is captured.")
    ahead = captured_at - time.time()
    if ahead > CLOCK_TOLERANCE:
        raise SoftformError(
            f"The capture time of {what} lies {ahead:.1f} s in the future.",
            "Synchronise the clocks of the device's computer and this one (NTP).",
        )
