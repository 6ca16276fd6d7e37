"""Node `shape_predictor`: parameters, topics, the `predict_shape` service and the life cycle."""

import time
from pathlib import Path

import numpy as np
from builtin_interfaces.msg import Time
from sensor_msgs.msg import PointCloud2

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.forward.live_pipeline import LivePipeline
from softform_core.robots import Robot, load_robot
from softform_inference.parameters import PARAMETERS
from softform_inference.prediction import measured_actuation, predict_cloud, predict_surface
from softform_interfaces.msg import ActuatorState, DriverState, Surface
from softform_interfaces.srv import PredictShape
from softform_ros import qos
from softform_ros.diagnostics import OK, WARN, Health
from softform_ros.lifecycle import SoftformLifecycleNode, run_node
from softform_ros.model_refresh import ModelRefresh
from softform_ros.timers import create_steady_timer

_MEASURED_SECONDS = 0.5
"""A driver that drives measures at least twice in this time."""

_REST_SECONDS = 1.0
"""Between two publications of the rest shape, for who comes late."""


class ShapePredictorNode(SoftformLifecycleNode):
    """Publishes the surface that the measured pressures make, and predicts for any others on request.

    Once the driver measures nothing any more the rest shape is published, marked as stale: no inflated one stays.
    """

    may_use_sim_time = True

    def __init__(self) -> None:
        """Declare the parameters; the model is loaded by `configure`."""
        super().__init__("shape_predictor", PARAMETERS, hardware_id="shape_predictor")
        self._robot: Robot | None = None
        self._models: LivePipeline | None = None
        self._newest: ActuatorState | None = None
        self._received = self._driver_told = self._rest_shown = -float("inf")
        self._driver_runs = False
        self._fault = ""

    def configure(self) -> None:
        """Load robot and models, and open topics and service."""
        values = self.parameters
        robot = self._robot = load_robot(values["robot"], "surface")
        self.diagnostics.hardware_id = robot.name
        model = Path(values["model"]) if values["model"] else None
        self._models = LivePipeline(robot, values["surface_points"], model, values["sim_to_real"])
        self._newest, self._fault, self._driver_told = None, "", -float("inf")
        self._surfaces = self.create_publisher(Surface, "predicted_surface", qos.PREDICTED_SURFACE)
        self._clouds = self.create_publisher(PointCloud2, "predicted_cloud", qos.PREDICTED_SURFACE)
        self._pressures = self.create_subscription(
            ActuatorState, "actuator_state", self._on_pressures, qos.ACTUATOR_STATE_READER
        )
        self._driver = self.create_subscription(DriverState, "driver_state", self._on_driver_state, qos.LATCHED_STATE)
        self._service = self.create_service(PredictShape, "predict_shape", self._on_request)
        self._timer = create_steady_timer(self, 1.0 / values["rate"], self._predict_newest)
        self._model_refresh = ModelRefresh(self, self._models)
        used = ", ".join(f"{key}: {value}" for key, value in self._models.description().items())
        self.get_logger().info(f"predicts '{robot.name}' with {len(self._models.current.uv)} points; {used}")

    def cleanup(self) -> None:
        """Close topics and service, and forget the models."""
        if hasattr(self, "_model_refresh"):
            self._model_refresh.close()
            del self._model_refresh
        for name, destroy in (
            ("_timer", self.destroy_timer),
            ("_service", self.destroy_service),
            ("_driver", self.destroy_subscription),
            ("_pressures", self.destroy_subscription),
            ("_clouds", self.destroy_publisher),
            ("_surfaces", self.destroy_publisher),
        ):
            if hasattr(self, name):
                destroy(getattr(self, name))
                delattr(self, name)
        self._models = self._robot = None

    def health(self) -> Health:
        """Say whether predictions follow the robot."""
        assert self._models is not None
        values = self._models.description()
        if self._models.fault:
            return Health(WARN, f"sim-to-real model rejected: {self._models.fault}", values)
        if not self.is_active:
            return Health(OK, "inactive", values)
        silence = time.monotonic() - self._received
        if silence > self.parameters["state_timeout"]:
            return Health(WARN, "no pressures come on actuator_state; check that the driver is active", values)
        if self._fault:
            return Health(WARN, self._fault, values)
        return Health(OK, "predicting", values)

    def _on_pressures(self, message: ActuatorState) -> None:
        self._newest, self._received = message, time.monotonic()

    def _on_driver_state(self, message: DriverState) -> None:
        self._driver_runs, self._driver_told = message.state == DriverState.RUNNING, time.monotonic()

    def _is_stale(self, now: float) -> bool:
        """Whether a driver that was heard of measures nothing: it does not run, or is silent itself."""
        if self._driver_told == -float("inf"):  # as in a recording without it
            return False
        is_silent = now - self._driver_told > self.parameters["state_timeout"]
        return now - self._received > _MEASURED_SECONDS and (is_silent or not self._driver_runs)

    def _predict_newest(self) -> None:
        if not self.is_active or self._robot is None or self._models is None:
            return
        message, self._newest = self._newest, None
        if message is None:
            now = time.monotonic()
            if self._is_stale(now) and now - self._rest_shown > _REST_SECONDS:
                self._rest_shown = now
                self._publish(self._robot.rest_actuation, self.get_clock().now().to_msg(), stale=True)
            return
        try:
            actuation = measured_actuation(self._robot, message.name, message.value)
        except SoftformError as error:
            self._fault = str(error)
            self.get_logger().warning(f"no prediction: {error}", throttle_duration_sec=5.0)
            return
        self._fault = ""
        self._publish(actuation, message.header.stamp, stale=False)

    def _publish(self, actuation: Array, stamp: Time, stale: bool) -> None:
        assert self._models is not None and self._robot is not None
        frame, models = self._robot.base_frame, self._models.models
        # A prediction that nobody hears would take the cores from servo and driver.
        if self._surfaces.get_subscription_count():
            surface = predict_surface(models.pipeline, self._robot.surface.patch, actuation, frame, stamp)
            surface.stale = stale
            self._surfaces.publish(surface)
        if self._clouds.get_subscription_count():
            self._clouds.publish(predict_cloud(models.pipeline, models.uncertainty, actuation, frame, stamp))

    def _on_request(self, request: PredictShape.Request, response: PredictShape.Response) -> PredictShape.Response:
        assert self._robot is not None and self._models is not None
        try:
            commands = self._robot.check_commands(np.asarray(request.pressures, dtype=np.float64))
        except SoftformError as error:
            response.success, response.message = False, str(error)
            return response
        actuation = self._robot.nearest_actuation(commands)
        frame, stamp = self._robot.base_frame, self.get_clock().now().to_msg()
        response.success = True
        models = self._models.models
        pipeline, uncertainty = models.pipeline, models.uncertainty
        if request.without_sim_to_real:
            pipeline, uncertainty = self._models.simulated, None
        response.surface = predict_surface(pipeline, self._robot.surface.patch, actuation, frame, stamp)
        response.cloud = predict_cloud(pipeline, uncertainty, actuation, frame, stamp)
        return response


def main() -> None:
    """Run the node until SIGINT or SIGTERM."""
    run_node(ShapePredictorNode)


if __name__ == "__main__":
    main()
