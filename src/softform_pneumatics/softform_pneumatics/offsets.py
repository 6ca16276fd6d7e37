"""Offsets of the pressure sensors: measured at rest, checked, stored, and read back."""

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from softform_actuation.device import DeviceError, ServedActuators
from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.files import write_atomically
from softform_pneumatics.boards.interface import Measurement, PressureBoard

EMPTYING_SECONDS = 2.0
"""Eight time constants of an open valve: what is measured after it is ambient pressure."""

MEASURING_SECONDS = 1.5
_FEWEST = 15
_STEADY_DRIFT = 50.0  # Pa between the halves of the measurement
_STEADY_SCATTER = 150.0  # Pa, standard deviation; the sensors' noise is 30 Pa
_READ_SECONDS = 0.05


class _Stored(BaseModel):
    model_config = ConfigDict(extra="forbid")

    robot: str
    port: str
    offsets: dict[str, float]
    """Pa of each chamber."""
    measured_at: str


class OffsetStore:
    """Offsets of one robot's chambers on one port, in a file.

    Args:
        path: Path of the file; None keeps them for this process only.
        served: Actuators of the chambers.
        port: USB adapter of the board, or the name of its port.
        limit: Pa; a larger offset is a broken sensor or a chamber that is not empty.
    """

    def __init__(self, path: Path | None, served: ServedActuators, port: str, limit: float) -> None:
        self._path = path
        self._served = served
        self._port = port
        self._limit = limit

    def read(self) -> Array:
        """Return the stored offsets, (k,) Pa; zeros if none are stored.

        Raises:
            SoftformError: If what is stored is damaged, of another robot or port, or out of range.
        """
        if self._path is None or not self._path.exists():
            return np.zeros(len(self._served.actuators))
        remedy = f"Remove {self._path} and calibrate again."
        try:
            stored = _Stored.model_validate_json(self._path.read_bytes())
        except (OSError, ValidationError) as error:
            raise SoftformError(f"The stored offsets {self._path} cannot be read: {error}.", remedy) from error
        if (stored.robot, stored.port) != (self._served.robot, self._port):
            raise SoftformError(f"The offsets in {self._path} are those of '{stored.robot}' on {stored.port}.", remedy)
        if set(stored.offsets) != set(self._served.actuators):
            raise SoftformError(f"The offsets in {self._path} are of other chambers.", remedy)
        return self.checked(np.array([stored.offsets[chamber] for chamber in self._served.actuators]))

    def checked(self, offsets: Array) -> Array:
        """Return `offsets`, (k,) Pa, if they are small enough to be offsets.

        Raises:
            SoftformError: If one is not.
        """
        for chamber, offset in zip(self._served.actuators, offsets, strict=True):
            if not abs(offset) <= self._limit:
                raise SoftformError(
                    f"At rest the sensor of chamber {chamber} reads {offset:.0f} Pa; up to {self._limit:g} Pa counts "
                    "as an offset.",
                    "Check that the chamber is empty and its tube open; a sensor that is so far off must be replaced.",
                )
        return offsets

    def write(self, offsets: Array) -> None:
        """Store `offsets`, (k,) Pa.

        Raises:
            SoftformError: If they cannot be written; those stored before stay.
        """
        if self._path is None:
            return
        stored = _Stored(
            robot=self._served.robot,
            port=self._port,
            offsets=dict(zip(self._served.actuators, (round(float(offset), 2) for offset in offsets), strict=True)),
            measured_at=time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        )
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SoftformError(
                f"{self._path.parent} cannot be made: {error}.", "Make that folder writable."
            ) from error
        write_atomically(self._path, stored.model_dump_json(indent=2).encode())


def measure_offsets(
    board: PressureBoard, read: Callable[[Measurement], Array], interrupted: Callable[[], bool]
) -> Array:
    """Return what a vented board's sensors `read`, (k,) Pa; the board is vented before and after.

    Raises:
        SoftformError: If interrupted, if too little arrives, or if the readings are not steady.
        DeviceError: If the board does not do what it is asked.
    """
    try:
        _read_for(board, EMPTYING_SECONDS, interrupted)
        board.observe()
        measured = _read_for(board, MEASURING_SECONDS, interrupted)
    finally:
        confirmed = board.vent()
    if not confirmed:
        raise DeviceError("The board does not confirm that it vents.", "Cut its power and check it.")
    if len(measured) < _FEWEST:
        raise SoftformError(
            f"Only {len(measured)} readings came in {MEASURING_SECONDS:g} s.", "Check the board and its cable."
        )
    pressures = np.array([read(measurement) for measurement in measured])
    half = len(pressures) // 2
    drift = np.abs(pressures[:half].mean(axis=0) - pressures[half:].mean(axis=0))
    if drift.max() > _STEADY_DRIFT or pressures.std(axis=0).max() > _STEADY_SCATTER:
        raise SoftformError(
            f"The readings are not steady: they drift by up to {drift.max():.0f} Pa and scatter by up to "
            f"{pressures.std(axis=0).max():.0f} Pa.",
            "Wait until the robot is empty and at rest, then calibrate again.",
        )
    # The median: one corrupt line that looks like a good one must not decide.
    return np.asarray(np.median(pressures, axis=0))


def _read_for(board: PressureBoard, seconds: float, interrupted: Callable[[], bool]) -> list[Measurement]:
    measurements: list[Measurement] = []
    until = board.clock.now() + seconds
    while (remaining := until - board.clock.now()) > 0.0:
        if interrupted():
            raise SoftformError("The calibration was interrupted.", "Calibrate again when the robot is at rest.")
        measurements += board.read(min(remaining, _READ_SECONDS))
    return measurements
