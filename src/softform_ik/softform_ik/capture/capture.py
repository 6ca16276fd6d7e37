"""Carries out goals of `capture_shape`, one at a time in a worker thread; moves nothing, raises nothing."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from softform_client.shared_codes import CODE_OF_CAPTURING, in_codes
from softform_core.arrays import Array
from softform_core.evaluation.measured_errors import MeasuredErrors
from softform_core.shapes.shape import Shape
from softform_ik.capture.devices import MotionCapture, Scanner, Seen
from softform_ik.robot.hardware import Hardware
from softform_ik.robot.stop_request import Outcome, StopRequest, stop_messages
from softform_interfaces.action import CaptureShape
from softform_ros.goal_error import failure

Code = CaptureShape.Result

_STOPPED = stop_messages(Code)


@dataclass(frozen=True)
class CaptureGoal:
    """A checked goal, in the robot's frame; its fields are the arguments of `ShapeClient.capture`."""

    target: Shape | None
    captures: int
    via: str


@dataclass(frozen=True)
class CaptureOutcome(Outcome):
    """Outcome of a goal.

    Attributes:
        seen: Capture that passed the checks; None without one.
        values: (k,) of the actuators, measured before the capture; None if the robot did not stand still.
        measured: Errors of the capture.
    """

    seen: Seen | None = None
    values: Array | None = None
    measured: MeasuredErrors | None = None


class Capture:
    """Captures one robot as it stands, with the device that a goal names, else the first."""

    def __init__(self, hardware: Hardware, devices: Mapping[str, Scanner | MotionCapture]) -> None:
        self._hardware, self.devices = hardware, devices

    def run(
        self, goal: CaptureGoal, stop: StopRequest, tell: Callable[[CaptureShape.Feedback], None]
    ) -> CaptureOutcome:
        """Carry out a goal; returns an outcome whatever happens."""
        seen = values = measured = None
        code, message = Code.NONE, ""
        device = self.devices[goal.via or next(iter(self.devices))]
        try:
            with in_codes(CODE_OF_CAPTURING):
                tell(CaptureShape.Feedback(stage="settling"))
                still = self._hardware.wait_until_still(stop)
                if still is not None:
                    values = still.values
                    tell(CaptureShape.Feedback(stage="capturing"))
                    seen = device.see(still, goal.captures, stop)
                    if seen is not None:
                        measured = device.compare(seen, still, goal.target)
        except Exception as error:
            code, message = failure(error, Code.CAPTURE_INVALID, Code.INTERNAL_ERROR)
        if measured is None and code == Code.NONE:
            code, message = stop.code, _STOPPED[stop.code]
        return CaptureOutcome(code, message, seen, values, measured)
