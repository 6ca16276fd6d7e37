"""Servers of a robot with a tip: paths (paper 001) and streams; shapes are rejected."""

import numpy as np

from softform_client.capture_watch import CaptureWatch
from softform_core.errors import SoftformError
from softform_core.forward.robot_models import TipModels
from softform_core.inverse.follow_path import TIP_UV, pull_mm2
from softform_core.inverse.out_of_reach import largest_deformation
from softform_core.robots import TIP_MARKER
from softform_ik.capture.capture import Capture
from softform_ik.capture.devices import MOCAP, MotionCapture
from softform_ik.capture.server import CaptureServer
from softform_ik.follow.tip import TipPathSolver
from softform_ik.follow.tip_record import TipRecord
from softform_ik.goals.goal_server import MovingGoalServer
from softform_ik.reach.reach import Reach, ReachSettings
from softform_ik.reach.server import ReachServer
from softform_ik.server_context import ServerContext, solve_settings
from softform_interfaces.msg import MarkerFrame
from softform_ros import qos
from softform_ros.conversions import positions_from_markers, seconds_from_stamp
from softform_ros.diagnostics import Health


class TipServers:
    """Servers of one robot with a tip, and its model.

    Raises:
        SoftformError: If its model cannot be used.
    """

    def __init__(self, link: ServerContext, models: TipModels) -> None:
        node, robot = link.node, link.robot
        self._node, self._frame = node, robot.base_frame
        values = node.parameters
        self._models, self._model = models, models.tip
        self._tip = TipRecord()
        simulated = self._model.without_sim_to_real
        deformation_mm = largest_deformation(simulated.tip, robot.actuation_min, robot.actuation_max)
        most_error_mm = values["max_relative_tip_error"] * deformation_mm
        hardware = link.hardware(CaptureWatch(), np.asarray)
        self._markers_subscription = node.create_subscription(
            MarkerFrame, "captured_markers", self._on_markers, qos.CAPTURED_MARKERS
        )
        tip = models.current
        self._streams = link.streams(lambda: tip, TIP_UV, most_error_mm, pull_mm2(self._model), self._model.dimensions)
        self._markers = link.markers()
        capture = Capture(hardware, {MOCAP: MotionCapture(robot, self._model, hardware, self._markers)})
        reach = Reach(robot, models, ReachSettings(solve_settings(values, most_error_mm)), hardware)
        self._servers = (
            self._streams,
            ReachServer(node, robot, reach.run, link.ledger, link.driver, link.commander),
            link.follow_server(TipPathSolver(robot, self._model), most_error_mm, hardware, self._tip),
            CaptureServer(node, robot, capture, link.ledger),
        )
        in_use = models.description()["sim-to-real"]
        node.get_logger().info(f"ready to lead the tip of '{robot.name}', sim-to-real: {in_use}")

    def end_goals(self) -> None:
        """Ask what is under way to end, since the node is deactivated."""
        for server in self._servers:
            server.end_goals()

    def end_without_client(self) -> None:
        """Ask goals that move the robot to end whose client is gone."""
        for server in self._servers:
            if isinstance(server, MovingGoalServer):
                server.end_without_client()

    def close(self) -> None:
        """End what is under way and close what is open."""
        for server in self._servers:
            server.close()
        self._node.destroy_subscription(self._markers_subscription)

    def health(self) -> Health:
        """Return whether the stream is followed, and which model is in use."""
        streams = self._streams.health()
        return Health(streams.level, streams.message, {**streams.values, **self._models.description()})

    def _on_markers(self, message: MarkerFrame) -> None:
        self._markers.note(message, seconds_from_stamp(message.header.stamp))
        if TIP_MARKER in message.name:
            try:
                message = self._node.frames.into(self._frame, message)
                place = positions_from_markers(message)[list(message.name).index(TIP_MARKER)]
            except SoftformError as error:
                self._node.get_logger().warning(f"markers rejected: {error}", throttle_duration_sec=5.0)
                return
            self._tip.note(place, seconds_from_stamp(message.header.stamp))
