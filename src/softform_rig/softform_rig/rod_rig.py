"""The virtual rig of a robot with a tip: a rod under the board's pressures, and motion capture of its tip."""

import numpy as np
from numpy.typing import NDArray

from softform_core.robots import TIP_MARKER, Robot
from softform_rig.live_rod import LiveRod
from softform_rig.motion_capture import MotionCapture
from softform_rig.plant import load_plant
from softform_rig.reality import Reality, board_sensors
from softform_rig.virtual_rig import OnMarkers, RigSettings, VirtualRig

Array = NDArray[np.float64]


class TipMarker:
    """The one marker of a robot with a tip; the body's shape is the place of its tip, (3,) m.

    Attributes:
        names: Its name, alone.
    """

    names = [TIP_MARKER]

    def positions(self, shape: Array) -> Array:
        """Where it is: (1, 3) m."""
        return shape[None]


class RodRig(VirtualRig):
    """Board, rod and motion capture of one reality.

    Args:
        robot: The robot on the rig.
        reality: How it differs from the simulator.
        settings: Of the devices; there is no scanner.
        on_markers: What to do with frames of motion capture.

    Raises:
        SoftformError: If reality or plant do not fit.
    """

    def __init__(
        self, robot: Robot, reality: Reality, settings: RigSettings, on_markers: OnMarkers | None = None
    ) -> None:
        """Build everything and compile what is compiled; nothing is opened yet."""
        rod, seed = LiveRod(robot, reality), settings.seed + 2
        cameras = MotionCapture(reality.motion_capture, TipMarker(), robot.base_markers, rod.rest_tip, seed)
        sensors = board_sensors(robot, reality, load_plant().sensor_noise, settings.seed)
        super().__init__(robot, sensors, rod, cameras, settings, on_markers)
