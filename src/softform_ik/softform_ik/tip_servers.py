"""Servers of a robot with a tip: paths (paper 001) and streams; shapes are rejected."""

import numpy as np

from softform_client.capture_watch import CaptureWatch
from softform_client.driver_watch import MeasuredValues
from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.forward.robot_models import TipModels
from softform_core.inverse.follow_path import TIP_UV, pull_mm2
from softform_core.robots import TIP_MARKER
from softform_core.units import MM_PER_M
from softform_ik.capture.capture import Capture, CaptureServer
from softform_ik.capture.devices import MOCAP, MotionCapture
from softform_ik.follow.follow import TipRecord
from softform_ik.follow.surface import SurfacePathSolver
from softform_ik.follow.tip import TipPathSolver
from softform_ik.goals.reach_limit import TIP_REACH_PARAMETER
from softform_ik.robot_servers import RobotServers
from softform_interfaces.msg import MarkerFrame
from softform_ros.conversions import positions_from_markers, seconds_from_stamp


class TipServers(RobotServers[TipModels]):
    """Servers of one robot with a tip."""

    reach_parameter = TIP_REACH_PARAMETER.name

    def simulated(self, actuation: Array) -> Array:
        """Return the simulated tip, (n, d) mm."""
        return self.models.tip.without_sim_to_real.tip(actuation)

    def open(self) -> None:
        """See `RobotServers`."""
        tip, self._tip = self.models.tip, TipRecord()
        hardware = self.hardware(CaptureWatch(), np.asarray)
        self.serve_stream(TIP_UV, pull_mm2(tip), tip.dimensions)
        smoothness_mm2 = self.node.parameters["path_smoothness"]
        of_points = SurfacePathSolver(self.robot, self.models, self.settings, self.driver, smoothness_mm2)
        self.serve_goals(hardware, TipPathSolver(self.robot, tip, self.driver, of_points), self._tip)

        def predict(still: MeasuredValues) -> Array:
            place = np.zeros(3)
            place[: tip.dimensions] = tip.tip(self.driver.effective(tip.memory, still.values)) / MM_PER_M
            return place

        capture = Capture(hardware, predict, {MOCAP: MotionCapture(self.robot, hardware, self.markers)})
        self.serve(CaptureServer(self.node, self.robot, capture, self.ledger))
        in_use = self.models.description()["sim-to-real"]
        self.node.get_logger().info(f"ready to lead the tip of '{self.robot.name}', sim-to-real: {in_use}")

    def on_markers(self, message: MarkerFrame) -> None:
        """Take captured markers; the path's errors are measured by those of the tip."""
        super().on_markers(message)
        if TIP_MARKER in message.name:
            try:
                message = self.node.frames.into(self.robot.base_frame, message)
                place = positions_from_markers(message)[list(message.name).index(TIP_MARKER)]
            except SoftformError as error:
                self.node.get_logger().warning(f"markers rejected: {error}", throttle_duration_sec=5.0)
                return
            self._tip.note(place, seconds_from_stamp(message.header.stamp))
