"""The emulated controller of grippers, written apart from the driver's side, with its errors and its fault."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from softform_core.arrays import Array
from softform_core.bodies.realities import Values, spread_values
from softform_core.robots import Robot
from softform_core.robots.description import Description
from softform_core.robots.devices import Device
from softform_rig.emulation import Emulation
from softform_rig.fault_kinds import Fault, FaultKind, Quantity
from softform_rig.rig_settings import RigSettings

STREAM_SECONDS, DRIFT = 0.02, -0.03  # s; m/s or rad/s of a gripper that moves on


class GripErrors(Description):
    """By how much a gripper truly stands beside where its arm measures it, of each channel: m and rad."""

    shift: Values = 0.0


class Controller:
    """Arms that go where they are told at once; an `EmulatedDevice`."""

    boots_on_open = False

    def __init__(self, grasps: Array, shift: Array) -> None:
        self._places, self._turns, self._shift = grasps[:, :3], Rotation.from_quat(grasps[:, 3:]), shift
        self.values: Array = np.zeros(6 * len(grasps))
        self.usual_boot_seconds = self.boot_seconds = 0.0
        self.is_hung = self.is_driven = False
        self._drifting: list[int] = []
        self._heard, self._output = b"", b""
        self._time = self._streamed = 0.0

    @property
    def is_held(self) -> bool:
        """Whether the arms hold, and truly stand still."""
        return not self.is_driven and not self._drifting

    def actuator_values(self, channels: list[int]) -> Array:
        """True poses relative to the grasps."""
        return np.asarray((self.values + self._shift)[channels])

    def boot(self, now: float) -> None:
        """Arms hold as they start."""
        self.is_driven, self._heard = False, b""

    def suffer(self, showing: Callable[[str], list[Fault]]) -> None:
        """Feel the faults that are on."""
        self._drifting = [fault.channel for fault in showing("drifting_gripper")]

    def vent_ends(self, data: bytes) -> list[int]:
        """Where requests to hold end."""
        return [place + 3 for place in range(len(data)) if data[place : place + 3] == b"\nH\n"]

    def receive(self, data: bytes, now: float) -> None:
        """Take bytes from the host."""
        self.advance(now)
        *lines, self._heard = (self._heard + data).split(b"\n")
        for line in [] if self.is_hung else lines:
            self._obey(line.decode("ascii", "replace").split())

    def advance(self, now: float) -> None:
        """Let time pass."""
        for channel in self._drifting:
            self.values[channel] += DRIFT * min(now - self._time, 0.1)
        self._time = now
        if self.is_driven and not self.is_hung and now - self._streamed >= STREAM_SECONDS:
            self._streamed = now
            self._say("P", self._poses())

    def take_output(self) -> bytes:
        """Return and forget what was sent."""
        sent, self._output = self._output, b""
        return sent

    def _obey(self, words: list[str]) -> None:
        kind = words[0] if words else ""
        if kind == "W":
            self._say("I", str(len(self._places)))
        elif kind == "D":
            self.is_driven = True
            self._say("D", "")
        elif kind == "H":
            self.is_driven = False
            self._say("H", self._poses())
        elif kind == "Q":
            self._say("P", self._poses())
        elif kind == "M" and self.is_driven and len(words) == 9:
            number, pose = int(words[1]), np.array(words[2:], dtype=np.float64)
            before, back = self.values.copy(), self._turns[number].inv()
            turned = (back * Rotation.from_quat(pose[3:])).as_rotvec()
            self.values[6 * number :][:6] = *back.apply(pose[:3] - self._places[number]), *turned
            self.values[self._drifting] = before[self._drifting]

    def _poses(self) -> str:
        relative = self.values.reshape(-1, 6)
        places = self._places + self._turns.apply(relative[:, :3])
        turns = (self._turns * Rotation.from_rotvec(relative[:, 3:])).as_quat()
        return " ".join(f"{value:.9f}" for value in np.column_stack([places, turns]).ravel())

    def _say(self, kind: str, words: str) -> None:
        self._output += f"{kind} {words}\n".encode()


class GripperEmulation:
    """See `Emulation`."""

    field, errors = "grippers", GripErrors
    faults = (
        FaultKind("drifting_gripper", "grippers", "a gripper moves on, whatever it is told",
                  (Quantity("channel", None, 0, 11, whole=True),)),
    )  # fmt: skip

    def check(self, errors: GripErrors, count: int) -> None:
        """As `Emulation.check`."""
        spread_values(errors.shift, count, "grippers.shift")

    def make(self, robot: Robot, device: Device, errors: GripErrors, settings: RigSettings) -> Any:
        """As `Emulation.make`."""
        shift = spread_values(errors.shift, len(robot.actuators), "grippers.shift")
        return Controller(np.array(device.settings["grasps"]), shift[robot.served_by(device)])

    def true_values(self, robot: Robot, device: Device, errors: GripErrors, commanded: Array) -> Array:
        """As `Emulation.true_values`."""
        shift = spread_values(errors.shift, len(robot.actuators), "grippers.shift")
        return np.asarray(commanded + shift[robot.served_by(device)])

    def drawn(self, spans: Array, draw: np.random.Generator) -> GripErrors:
        """As `Emulation.drawn`."""
        return GripErrors(shift=draw.normal(0.0, 0.002 * spans).tolist())


EMULATION: Emulation = GripperEmulation()
