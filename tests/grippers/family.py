"""Two or more grippers on one controller: the driver's side, which does the rigid-motion mathematics.

On the wire a pose is that in the frame of the arms, as position and quaternion. `W` asks who is there, `D` drives and
streams, `M n x y z qx qy qz qw` is a target, `Q` asks for all poses, and `H` holds them where they are.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from softform_actuation.device import (
    Device,
    DeviceError,
    DeviceFamily,
    DeviceHealth,
    Measurement,
    Rest,
    SafeAction,
    ServedActuators,
    never,
)
from softform_actuation.ports import SerialFamily
from softform_actuation.serial_link import SerialLink
from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_ros.parameters import Parameter

BAUD_RATE = 115200
_HOLD = b"\nH\n"
_REPLY_SECONDS = 0.4
_STILL_SECONDS, _STILL = 0.3, 0.1  # s, and share of the tolerance: what moved by less since it was held stands still
_POSE = ["position"] * 3 + ["rotation"] * 3


class Grippers:
    """A `Device`: arms that hold grippers at poses relative to their grasps. Safe is to hold, once that is measured."""

    safe_action = SafeAction.HOLD

    def __init__(self, served: ServedActuators, link: SerialLink) -> None:
        self._served, self._link, self.clock = served, link, link.clock
        self._grasps = np.array(served.settings["grasps"], dtype=np.float64)
        self._buffer = b""
        self._drives = False
        self._held: Array | None = None
        self._held_at = 0.0
        self.is_holding = False

    @property
    def identity(self) -> str:
        """Which controller, on which port."""
        return f"grippers on {self._link.path}"

    def open(self, interrupted: Callable[[], bool] = never) -> None:
        """As `Device.open`."""
        self._link.open(BAUD_RATE)
        try:
            self._link.guard(_HOLD)
            self._buffer = b""
            if self._ask(b"W\n", "I") != [str(len(self._grasps))]:
                raise DeviceError(f"{self.identity} are not {len(self._grasps)}.", "Check the port, and `grasps`.")
            if not self.make_safe():
                raise DeviceError(f"{self.identity} do not confirm that they hold.", "Press their emergency stop.")
        except BaseException:
            self.close()
            raise

    def test(self, interrupted: Callable[[], bool]) -> None:
        """Nothing to find out: arms report their own faults."""

    def begin(self) -> Array:
        """As `Device.begin`: from where they are held."""
        held = self._measured()
        self.is_holding, self._held, self._drives = False, None, True
        self._ask(b"D\n", "D")
        return held

    def set_targets(self, targets: Array, interrupted: Callable[[], bool]) -> bool:
        """As `Device.set_targets`."""
        for number, (grasp, pose) in enumerate(zip(self._grasps, targets.reshape(-1, 6), strict=True)):
            turn = Rotation.from_quat(grasp[3:])
            place, quaternion = grasp[:3] + turn.apply(pose[:3]), (turn * Rotation.from_rotvec(pose[3:])).as_quat()
            words = " ".join(f"{value:.9f}" for value in (*place, *quaternion))
            self._link.write(f"M {number} {words}\n".encode())
        return True

    def read(self, timeout: float) -> list[Measurement]:
        """As `Device.read`."""
        return [
            Measurement(self._relative(words), self.clock.now()) for kind, words in self._lines(timeout) if kind == "P"
        ]

    def make_safe(self) -> bool:
        """As `Device.make_safe`; whether they stand still is measured by `check`."""
        self.is_holding = self._drives = False
        self._held = None
        self._link.write(_HOLD)
        try:
            self._held = self._relative(self._answer("H"))
        except DeviceError:
            if not self._link.is_open:
                raise
            return False
        self._held_at = self.clock.now()
        return True

    def check(self) -> Rest:
        """As `Device.check`: held is what has not moved since."""
        values, unknown = self._measured(), np.zeros(len(self._served.actuators), dtype=bool)
        moved = (
            ~unknown if self._held is None else np.abs(values - self._held) > _STILL * self._served.tolerances.settle
        )
        is_late = self.clock.now() - self._held_at >= _STILL_SECONDS
        self.is_holding = is_late and not bool(moved.any())
        names = ", ".join(np.array(self._served.actuators)[moved])
        complaint = f"{names} moves on though it is held: press the emergency stop" if moved.any() else ""
        return Rest(values, unknown, complaint)

    def calibrate(self, interrupted: Callable[[], bool]) -> str:
        """Nothing to calibrate."""
        return ""

    def close(self) -> None:
        """As `Device.close`."""
        is_sure, self.is_holding = self.is_holding, False
        self._link.close(emergency=not is_sure)

    def health(self) -> DeviceHealth:
        """As `Device.health`."""
        return DeviceHealth({"holding": self.is_holding})

    def _measured(self) -> Array:
        return self._relative(self._ask(b"Q\n", "P"))

    def _relative(self, words: list[str]) -> Array:
        """Poses (k,) relative to the grasps of those on the wire."""
        poses = np.array(words, dtype=np.float64).reshape(-1, 7)
        found = []
        for grasp, pose in zip(self._grasps, poses, strict=True):
            back = Rotation.from_quat(grasp[3:]).inv()
            found.append(np.append(back.apply(pose[:3] - grasp[:3]), (back * Rotation.from_quat(pose[3:])).as_rotvec()))
        return np.concatenate(found)

    def _ask(self, request: bytes, kind: str) -> list[str]:
        self._link.write(request)
        return self._answer(kind)

    def _answer(self, kind: str) -> list[str]:
        end = self.clock.now() + _REPLY_SECONDS
        while (left := end - self.clock.now()) > 0.0:
            for found, words in self._lines(left):
                if found == kind:
                    return words
        raise DeviceError(f"{self.identity} do not answer.", "Check their power and cable.")

    def _lines(self, timeout: float) -> list[tuple[str, list[str]]]:
        *lines, self._buffer = (self._buffer + self._link.receive(timeout)).split(b"\n")
        return [(words[0], words[1:]) for line in lines if (words := line.decode("ascii", "replace").split())]


class GripperFamily(SerialFamily):
    """Grippers of one controller."""

    parameters = (Parameter("port", "/dev/ttyUSB0", "port of the arms' controller"),)

    def check(self, served: ServedActuators) -> None:
        """As `DeviceFamily.check`."""
        grasps = np.shape(served.settings.get("grasps", ()))
        if len(grasps) != 2 or grasps[1] != 7 or served.quantities != _POSE * grasps[0]:
            raise SoftformError(
                f"'{served.device}' does not have six channels for each of its grasps.",
                "Give `grasps`, x, y, z (m), qx, qy, qz, qw each, and three positions and three rotations for each.",
            )

    def make(self, served: ServedActuators, values: Mapping[str, Any], interrupted: Callable[[], bool]) -> Device:
        """As `DeviceFamily.make`."""
        self.check(served)
        return Grippers(served, SerialLink(values["port"]))


FAMILY: DeviceFamily = GripperFamily()
