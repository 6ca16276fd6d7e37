"""Channels that the robot does not use."""

import pytest

from softform_actuation.device import UnsafeError
from softform_pneumatics.pneumatic_device import UnusedWatch


def test_pressure_on_a_channel_that_nobody_uses_is_a_fault() -> None:
    watch = UnusedWatch(1500.0)
    for pressures in ({7: 1400.0, 9: float("nan")}, {7: 2000.0, 9: 0.0}, {7: 100.0, 9: 0.0}, {7: 0.0, 9: -1600.0}):
        watch.check(pressures)  # one reading alone may be a corrupt line
    with pytest.raises(UnsafeError, match="Channel 9, which the robot does not use, is at -1700 Pa"):
        watch.check({7: 0.0, 9: -1700.0})
