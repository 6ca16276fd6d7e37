"""Servers of a robot with a surface: shapes to reach, streams and paths to follow."""

from sensor_msgs.msg import PointCloud2

from softform_client.capture_watch import CaptureWatch
from softform_client.driver_watch import MeasuredValues
from softform_core.arrays import Array
from softform_core.evaluation.comparison import PredictedSurface
from softform_core.evaluation.measured_errors import resting_surface
from softform_core.forward.robot_models import SurfaceModels
from softform_ik.capture.capture import Capture, CaptureServer
from softform_ik.capture.devices import MOCAP, SCANNER, MotionCapture, Scanner
from softform_ik.capture.drift_watch import DriftWatch
from softform_ik.follow.follow import TipRecord
from softform_ik.follow.surface import SurfacePathSolver
from softform_ik.goals.reach_limit import REACH_PARAMETER
from softform_ik.robot_servers import RobotServers
from softform_ik.warm_up import warm_up
from softform_ros import qos
from softform_ros.conversions import points_from_cloud
from softform_ros.goal_error import GoalCode, in_code


class SurfaceServers(RobotServers[SurfaceModels]):
    """Servers of one robot with a surface."""

    reach_parameter = REACH_PARAMETER.name

    def simulated(self, actuation: Array) -> Array:
        """Return the simulated surface, (n, P, 3) mm."""
        return self.models.simulated.points(actuation)

    def open(self) -> None:
        """See `RobotServers`."""
        node, robot, models, driver = self.node, self.robot, self.models, self.driver
        warm_up(models, robot)
        values = node.parameters
        self._drift = DriftWatch(robot, models, driver)
        captures: CaptureWatch[PointCloud2] = CaptureWatch()
        node.subscribe(PointCloud2, "captured_cloud", captures.take, qos.CAPTURED_CLOUD)
        hardware = self.hardware(captures, self._read_capture, self._drift.note)

        def predict(still: MeasuredValues) -> PredictedSurface:
            model = models.current
            return PredictedSurface.of(model, driver.effective(model.memory, still.values))

        devices: dict[str, Scanner | MotionCapture] = {
            SCANNER: Scanner(robot, hardware, resting_surface(models.simulated, robot)),
            MOCAP: MotionCapture(robot, hardware, self.markers),
        }
        self.serve_stream(models.current.patches.samples(values["servo_points"]))
        self.serve_goals(
            hardware, SurfacePathSolver(robot, models, self.settings, driver, values["path_smoothness"]), TipRecord()
        )
        self.serve(CaptureServer(node, robot, Capture(hardware, predict, devices), self.ledger))
        model_in_use = models.description()["sim-to-real"]
        node.get_logger().info(
            f"ready to plan for '{robot.name}' over {len(models.current.uv)} points, sim-to-real: {model_in_use}"
        )

    @property
    def warning(self) -> str:
        """What is wrong with the models, or with how they fit the robot."""
        return super().warning or self._drift.finding

    def _read_capture(self, cloud: PointCloud2) -> Array:
        with in_code(GoalCode.CAPTURE_INVALID, "The captured cloud: "):
            cloud = self.node.frames.into(self.robot.base_frame, cloud)
        return points_from_cloud(cloud)
