"""Servers of a robot with a surface: shapes to reach, streams and paths to follow; models are kept fresh."""

from collections.abc import Callable
from typing import Any

from sensor_msgs.msg import PointCloud2

from softform_client.capture_watch import CaptureWatch
from softform_client.driver_watch import MeasuredValues
from softform_client.reach_goal import Code
from softform_core.arrays import Array
from softform_core.evaluation.comparison import PredictedSurface
from softform_core.evaluation.measured_errors import resting_surface
from softform_core.forward.robot_models import SurfaceModels
from softform_core.inverse.out_of_reach import largest_deformation
from softform_ik.capture.capture import Capture
from softform_ik.capture.devices import MOCAP, SCANNER, MotionCapture, Scanner
from softform_ik.capture.drift_watch import DriftWatch
from softform_ik.capture.server import CaptureServer
from softform_ik.follow.surface import SurfacePathSolver
from softform_ik.follow.tip_record import TipRecord
from softform_ik.goals.goal_server import MovingGoalServer
from softform_ik.reach.goal_execution import ClosedLoopSettings
from softform_ik.reach.reach import Reach, ReachSettings
from softform_ik.reach.server import ReachServer
from softform_ik.server_context import ServerContext, solve_settings
from softform_ik.warm_up import warm_up
from softform_interfaces.msg import MarkerFrame
from softform_ros import qos
from softform_ros.conversions import points_from_cloud, seconds_from_stamp
from softform_ros.diagnostics import WARN, Health
from softform_ros.goal_error import in_code
from softform_ros.model_refresh import ModelRefresh


class SurfaceServers:
    """Servers of one robot with a surface, its models and captures; `SoftformError` if its models cannot be used."""

    def __init__(self, link: ServerContext, models: SurfaceModels) -> None:
        node, robot = self._node, self._robot = link.node, link.robot
        self._models = models
        values = node.parameters
        warm_up(models.simulated, robot)
        warm_up(models.current, robot)
        captures: CaptureWatch[PointCloud2] = CaptureWatch()
        driver = link.driver
        self._drift = DriftWatch(robot, models, driver)
        hardware = link.hardware(captures, self._read_capture, self._drift.note)
        deformation_mm = largest_deformation(models.simulated.points, robot.actuation_min, robot.actuation_max)
        most_error_mm = values["max_relative_error"] * deformation_mm
        solving = solve_settings(values, most_error_mm)
        looping = ClosedLoopSettings(values["max_rounds"], values["gain"], values["least_improvement"])
        reach = Reach(robot, models, ReachSettings(solving, looping), hardware)
        paths = SurfacePathSolver(robot, models, solving, driver, values["path_smoothness"])
        markers = link.markers()

        def note(watch: CaptureWatch[Any]) -> Callable[[Any], None]:
            return lambda message: watch.note(message, seconds_from_stamp(message.header.stamp))

        self._subscriptions = [
            node.create_subscription(PointCloud2, "captured_cloud", note(captures), qos.CAPTURED_CLOUD),
            node.create_subscription(MarkerFrame, "captured_markers", note(markers), qos.CAPTURED_MARKERS),
        ]

        def predict(still: MeasuredValues) -> PredictedSurface:
            model = models.current
            return PredictedSurface.of(model, driver.effective(model.memory, still.values))

        devices: dict[str, Scanner | MotionCapture] = {
            SCANNER: Scanner(robot, predict, hardware, resting_surface(models.simulated, robot)),
            MOCAP: MotionCapture(robot, predict, hardware, markers),
        }
        self._model_refresh = ModelRefresh(node, models)
        followers = models.current.patches.samples(values["servo_points"])
        self._streams = link.streams(lambda: models.current, followers, most_error_mm)
        self._servers = (
            self._streams,
            ReachServer(node, robot, reach.run, link.ledger, link.driver, link.commander),
            CaptureServer(node, robot, Capture(hardware, devices), link.ledger),
            link.follow_server(paths, most_error_mm, hardware, TipRecord()),
        )
        model_in_use = models.description()["sim-to-real"]
        node.get_logger().info(
            f"ready to plan for '{robot.name}' over {len(models.current.uv)} points, sim-to-real: {model_in_use}"
        )

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
        self._model_refresh.close()
        for subscription in self._subscriptions:
            self._node.destroy_subscription(subscription)

    def health(self) -> Health:
        """Return whether the models are in use and the stream is followed, and details of both."""
        streams = self._streams.health()
        values = {**streams.values, **self._models.description()}
        if self._models.fault:
            return Health(WARN, f"sim-to-real model not in use: {self._models.fault}", values)
        if self._drift.finding:
            return Health(WARN, self._drift.finding, values)
        return Health(streams.level, streams.message, values)

    def _read_capture(self, cloud: PointCloud2) -> Array:
        with in_code(Code.CAPTURE_INVALID, "The captured cloud: "):
            cloud = self._node.frames.into(self._robot.base_frame, cloud)
        return points_from_cloud(cloud)
