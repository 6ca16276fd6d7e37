"""What the board's pumps and valve do to a pressure, as the identified plant has it.

What OpenPneu's firmware does with a reading is known from the same recordings as the plant: so every reading that the
board streams also tells what its pumps and its valve do until the next.
"""

import numpy as np
from numpy.typing import NDArray

from softform_core.plant import Plant
from softform_core.units import PA_PER_KPA

# Of the recordings: command over error, of a full scale of 4090 counts, in three ranges of the error.
_DUTY_A_PASCAL = 1440.0 / 4090.0 / PA_PER_KPA
_FINE_ERROR, _FINE_FACTOR = 500.0, 3.0
_MIDDLE_ERROR, _MIDDLE_FACTOR = 1000.0, 1.6


def expected_flows(
    plant: Plant,
    volumes: NDArray[np.float64] | float,
    targets: NDArray[np.float64],
    readings: NDArray[np.float64],
    vent_threshold: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What the firmware's answer to a reading does to the pressure.

    Args:
        plant: Identified plant.
        volumes: Volume of each chamber, (k,) or one for all, relative to that of the recordings.
        targets: (k,) Pa.
        readings: (k,) Pa.
        vent_threshold: Pa beyond the target at which the valve opens.

    Returns:
        How fast the pump drives the pressure away from ambient, and how fast leaks and valve let it back, (k,) Pa/s
        each, both counted as positive.
    """
    side = np.where(targets >= 0.0, 1.0, -1.0)
    missing, pressure = side * (targets - readings), side * readings
    factor = np.where(missing < _FINE_ERROR, _FINE_FACTOR, np.where(missing < _MIDDLE_ERROR, _MIDDLE_FACTOR, 1.0))
    duty = np.where(missing > 0.0, np.minimum(1.0, factor * _DUTY_A_PASCAL * missing), 0.0)
    rate, stall, dead_duty = (
        np.where(side > 0.0, getattr(plant.inflation, name), getattr(plant.deflation, name))
        for name in ("rate", "stall", "dead_duty")
    )
    turning = np.maximum(0.0, duty - dead_duty) / (1.0 - dead_duty)
    pumped = rate * PA_PER_KPA * turning * (1.0 - pressure / (stall * PA_PER_KPA)) / volumes
    held = np.where(missing <= 0.0, 1.0 / plant.hold_time, 0.0)
    opened = np.where(-missing > vent_threshold, 1.0 / plant.vent_time, held)
    return pumped, np.maximum(pressure, 0.0) * (1.0 / plant.leak_time + opened) / volumes
