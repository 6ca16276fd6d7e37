"""What the node serves for a robot with a tip: paths (paper 001) and streams; shapes are rejected."""

from typing import NoReturn

import numpy as np

from softform_client.capture_watch import CaptureWatch
from softform_client.reach_goal import Code
from softform_core.errors import SoftformError
from softform_core.forward.tip_model import tip_model_in_use
from softform_core.forward.tip_point import TipPoint
from softform_core.inverse.follow_path import TIP_UV, pull_mm2
from softform_core.inverse.out_of_reach import largest_deformation
from softform_core.robots import TIP_MARKER
from softform_ik.capture.capture import Capture
from softform_ik.capture.devices import MOCAP, MotionCapture
from softform_ik.capture.server import CaptureServer
from softform_ik.follow.tip import TipPathSolver
from softform_ik.follow.tip_record import TipRecord
from softform_ik.goals.goal_server import MovingGoalServer
from softform_ik.server_context import ServerContext
from softform_interfaces.action import ReachShape
from softform_interfaces.msg import MarkerFrame
from softform_ros import qos
from softform_ros.checked_action import CheckedAction
from softform_ros.conversions import positions_from_markers, seconds_from_stamp
from softform_ros.diagnostics import Health
from softform_ros.goal_error import GoalError


class TipServers:
    """Servers of one robot with a tip, and its model.

    Raises:
        SoftformError: If its model cannot be used.
    """

    def __init__(self, link: ServerContext) -> None:
        node, robot = link.node, link.robot
        self._node, self._frame = node, robot.base_frame
        values = node.parameters
        self._model = tip_model_in_use(robot, values["model"], values["sim_to_real"])
        self._tip = TipRecord()
        simulated = self._model.without_sim_to_real
        deformation_mm = largest_deformation(simulated.tip, robot.actuation_min, robot.actuation_max)
        most_error_mm = values["most_tip_miss"] * deformation_mm
        hardware = link.hardware(CaptureWatch(), np.asarray)
        self._markers_subscription = node.create_subscription(
            MarkerFrame, "captured_markers", self._on_markers, qos.CAPTURED_MARKERS
        )
        tip = TipPoint(self._model)
        self._streams = link.streams(lambda: tip, TIP_UV, most_error_mm, pull_mm2(self._model), self._model.dimensions)
        self._markers = link.markers()
        capture = Capture(hardware, {MOCAP: MotionCapture(robot, self._model, hardware, self._markers)})
        self._servers = (
            self._streams,
            link.follow_server(TipPathSolver(robot, self._model), most_error_mm, hardware, self._tip),
            CaptureServer(node, robot, capture, link.ledger),
        )

        def reject(*goal: object) -> NoReturn:
            raise GoalError(
                Code.INVALID_TARGET,
                f"Robot '{robot.name}' has a tip and no surface: it has no shape to take.",
                "Lead its tip along points with follow_waypoints, or stream its places on target_tip.",
            )

        self._shapes = CheckedAction[NoReturn](
            node, ReachShape, "reach_shape", link.ledger, reject, reject, reject, reject
        )
        node.get_logger().info(f"ready to lead the tip of '{robot.name}', sim-to-real: {self._in_use}")

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
        self._shapes.close()
        self._node.destroy_subscription(self._markers_subscription)

    def health(self) -> Health:
        """Whether the stream is followed, and which model is in use."""
        streams = self._streams.health()
        return Health(streams.level, streams.message, {**streams.values, "sim-to-real": self._in_use})

    @property
    def _in_use(self) -> str:
        return "none" if self._model.sim_to_real is None else "in use"

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
