"""The devices that `capture_shape` can look with: what each sees of a robot that stands still, and how that fits."""

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from softform_client.capture_watch import CaptureWatch
from softform_client.driver_watch import MeasuredValues
from softform_core.arrays import Array
from softform_core.evaluation.comparison import PredictedSurface
from softform_core.evaluation.errors import distances_to_shape
from softform_core.evaluation.measured_errors import MeasuredErrors, measure_errors
from softform_core.frames.marker_quality import LabelledMarkers, average_markers
from softform_core.geometry.rigid import RigidTransform
from softform_core.inverse.counterpart import RestingSurface
from softform_core.robots import TIP_MARKER, Robot
from softform_core.shapes.shape import Shape
from softform_core.units import MM_PER_M
from softform_ik.reach.capture_checks import check_capture
from softform_ik.robot.hardware import Hardware
from softform_ik.robot.stop_request import StopRequest
from softform_interfaces.msg import MarkerFrame
from softform_ros.conversions import positions_from_markers
from softform_ros.goal_error import GoalCode, GoalError, in_code

SCANNER, MOCAP = "scanner", "mocap"

_AVERAGED_MARKERS = 10
"""Default number of marker frames whose mean is one capture; as of a collected frame."""

_MOST_LOOKS = 5
"""Most captures without a visible marker before giving up: an arm passes before the cameras."""

_ELSEWHERE = 0.25
"""Distance of markers from the prediction, over the robot's size, from which unit, frame or robot is wrong."""

Predicted: TypeAlias = PredictedSurface | Array
"""The surface, or the place (3,) m of the tip, that is predicted for the measured values."""


@dataclass(frozen=True)
class Seen:
    """Credible captures.

    Attributes:
        points: (N, 3) m in the robot's frame.
        names: Marker name of each point; empty for a cloud.
    """

    points: Array
    names: list[str] = field(default_factory=list)


class Scanner:
    """Clouds of the surface, which at rest is `rest`."""

    def __init__(self, robot: Robot, hardware: Hardware, rest: RestingSurface) -> None:
        self._robot, self._hardware, self._rest = robot, hardware, rest

    def see(self, still: MeasuredValues, predicted: Predicted, captures: int, stop: StopRequest) -> Seen | None:
        """Look at a robot that stands still; None if stopped.

        Args:
            still: Actuator values measured when the robot had settled.
            predicted: What is predicted for them.
            captures: Clouds or frames of markers that make one capture; 0: the default.
            stop: Request to end the wait.

        Raises:
            GoalError: If nothing comes in time, the robot moves meanwhile, or what comes cannot be true.
        """
        assert isinstance(predicted, PredictedSurface)
        points = self._hardware.look_on(still, captures, stop)
        return None if points is None else Seen(check_capture(points, predicted.points, self._robot))

    def compare(self, seen: Seen, predicted: Predicted, target: Shape | None) -> MeasuredErrors:
        """Return distances to a target in m, or to what is predicted.

        Raises:
            SoftformError: If they cannot be compared.
        """
        assert isinstance(predicted, PredictedSurface)
        return measure_errors(seen.points, target or predicted.mesh, RigidTransform(), self._rest)


class MotionCapture:
    """Markers in the robot's frame, averaged over some frames."""

    def __init__(self, robot: Robot, hardware: Hardware, markers: CaptureWatch[MarkerFrame]) -> None:
        self._robot, self._hardware, self._markers = robot, hardware, markers

    def see(self, still: MeasuredValues, predicted: Predicted, captures: int, stop: StopRequest) -> Seen | None:
        """Capture markers seen in at least half of the frames, like `Scanner.see`; looks again if there is none."""
        for _ in range(_MOST_LOOKS):
            taken = self._hardware.look_on_markers(still, self._markers, captures or _AVERAGED_MARKERS, stop)
            if taken is None:
                return None
            seen = self._averaged(taken)
            if seen.names:
                break
        else:
            raise GoalError(
                GoalCode.CAPTURE_INVALID, "No marker is visible.", "Clear the cameras' view of them, and capture again."
            )
        with in_code(GoalCode.CAPTURE_INVALID):
            off = float(np.median(self.compare(seen, predicted, None).errors))
        if off > _ELSEWHERE * self._robot.body.size:
            raise GoalError(
                GoalCode.CAPTURE_INVALID,
                f"The markers lie {off:.3g} m from where the robot is predicted to be.",
                "Check unit and alignment of motion capture, and that driver and cameras look at the same robot.",
            )
        return seen

    def _averaged(self, taken: list[MarkerFrame]) -> Seen:
        with in_code(GoalCode.CAPTURE_INVALID):
            frames = [LabelledMarkers(list(one.name), positions_from_markers(one)) for one in taken]
            names = list(dict.fromkeys(name for frame in frames for name in frame.names))
            positions, fault = average_markers(frames, names, self._robot)
        if fault:
            raise GoalError(GoalCode.CAPTURE_INVALID, f"The markers cannot be used: {fault}", "Correct their labels.")
        visible = np.flatnonzero(np.isfinite(positions).all(axis=1))
        return Seen(positions[visible], [names[index] for index in visible])

    def compare(self, seen: Seen, predicted: Predicted, target: Shape | None) -> MeasuredErrors:
        """Compare markers with the surface and a tip with its predicted place, like `Scanner.compare`."""
        points = seen.points
        if isinstance(predicted, PredictedSurface):
            errors = distances_to_shape(points, target or predicted.mesh) / MM_PER_M
            return MeasuredErrors(points, errors, np.arange(len(points)))
        if TIP_MARKER not in seen.names:
            raise GoalError(
                GoalCode.CAPTURE_INVALID, f"The marker '{TIP_MARKER}' is not seen.", "Clear the cameras' view of it."
            )
        points = points[[seen.names.index(TIP_MARKER)]]
        return MeasuredErrors(points, np.linalg.norm(points - predicted, axis=1), np.arange(1))
