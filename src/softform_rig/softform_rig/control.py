"""The board's own pressure regulation: a proportional law with hold and vent, one decision a channel and control tick.

The gains are read from the recorded logs, where command over error takes exactly three values: 1440 counts per kPa,
1.6 times that below 1 kPa and 3 times below 0.5 kPa of error, out of a full scale of 4090 counts. Pressures in kPa.
"""

import numba
import numpy as np
from numpy.typing import NDArray

CONTROL_RATE = 30.0  # Hz, as shipped
DEFAULT_THRESHOLD = 2.0  # kPa beyond the target at which the valve vents
PUMP_IDLE, PUMP_INFLATE, PUMP_DEFLATE = 0, 1, 2

_GAIN = 1440.0 / 4090.0  # duty per kPa
_FINE_ERROR, _FINE_FACTOR = 0.5, 3.0
_MIDDLE_ERROR, _MIDDLE_FACTOR = 1.0, 1.6


@numba.njit(cache=True)
def proportional_control(target: float, measured: float, threshold: float) -> tuple[int, float, bool]:
    """Choose pump, duty and valve of one channel.

    A target of zero or more uses the inflation pump, a negative one the deflation pump. A pressure beyond the target by
    at most `threshold` is held with the pump off; beyond that the valve vents.

    Args:
        target: kPa gauge.
        measured: kPa gauge, as the sensor says.
        threshold: Vent threshold, kPa.

    Returns:
        Pump (`PUMP_IDLE`, `PUMP_INFLATE`, `PUMP_DEFLATE`), its duty 0…1, and whether the valve vents.
    """
    side = 1.0 if target >= 0.0 else -1.0
    missing = side * (target - measured)
    if missing <= 0.0:
        return PUMP_IDLE, 0.0, -missing > threshold
    factor = 1.0
    if missing < _FINE_ERROR:
        factor = _FINE_FACTOR
    elif missing < _MIDDLE_ERROR:
        factor = _MIDDLE_FACTOR
    return PUMP_INFLATE if side > 0.0 else PUMP_DEFLATE, min(1.0, factor * _GAIN * missing), False


@numba.njit(cache=True)
def regulate(
    targets: NDArray[np.float64],
    measured: NDArray[np.float64],
    threshold: float,
    inflate: NDArray[np.float64],
    deflate: NDArray[np.float64],
    vent: NDArray[np.bool_],
) -> None:
    """Decide all channels in place; a reading beyond ±100 kPa leaves that channel's last decision as it is.

    Args:
        targets: (n,) kPa.
        measured: (n,) kPa.
        threshold: Vent threshold, kPa.
        inflate: (n,) duty of the inflation pumps, written.
        deflate: (n,) duty of the deflation pumps, written.
        vent: (n,) valves that vent, written.
    """
    for channel in range(targets.shape[0]):
        if not abs(measured[channel]) <= 100.0:
            continue
        pump, duty, opened = proportional_control(targets[channel], measured[channel], threshold)
        inflate[channel] = duty if pump == PUMP_INFLATE else 0.0
        deflate[channel] = duty if pump == PUMP_DEFLATE else 0.0
        vent[channel] = opened
