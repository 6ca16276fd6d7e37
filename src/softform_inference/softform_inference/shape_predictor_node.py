"""Node `shape_predictor`: parameters, topics, the `predict_shape` service and the life cycle."""

import time
from pathlib import Path

import numpy as np
from sensor_msgs.msg import PointCloud2

from softform_core.errors import SoftformError
from softform_core.kinematics.pipeline import ForwardPipeline
from softform_core.kinematics.robot_pipeline import load_pipeline
from softform_core.robots import Robot, load_robot
from softform_inference.parameters import PARAMETERS
from softform_inference.prediction import measured_actuation, predict_cloud, predict_surface
from softform_interfaces.msg import ChamberPressures, Surface
from softform_interfaces.srv import PredictShape
from softform_ros import qos
from softform_ros.diagnostics import OK, WARN, Health
from softform_ros.lifecycle import SoftformLifecycleNode, run_node


class ShapePredictorNode(SoftformLifecycleNode):
    """Publishes the surface that the measured pressures make, and predicts for any others on request."""

    def __init__(self) -> None:
        """Declare the parameters; the model is loaded by `configure`."""
        super().__init__("shape_predictor", PARAMETERS, hardware_id="shape_predictor")
        self._robot: Robot | None = None
        self._pipeline: ForwardPipeline | None = None
        self._newest: ChamberPressures | None = None
        self._received = -float("inf")
        self._fault = ""

    def configure(self) -> None:
        """Load robot and model, and open topics and service."""
        values = self.parameters
        robot = self._robot = load_robot(values["robot"])
        self.diagnostics.hardware_id = robot.name
        model = Path(values["model"]) if values["model"] else None
        self._pipeline = load_pipeline(robot, values["surface_points"], model)
        self._newest, self._fault = None, ""
        self._surfaces = self.create_publisher(Surface, "predicted_surface", qos.PREDICTED_SURFACE)
        self._clouds = self.create_publisher(PointCloud2, "predicted_cloud", qos.PREDICTED_SURFACE)
        self._pressures = self.create_subscription(
            ChamberPressures, "pressure_state", self._on_pressures, qos.PRESSURE_STATE_READER
        )
        self._service = self.create_service(PredictShape, "predict_shape", self._on_request)
        self._timer = self.create_timer(1.0 / values["rate"], self._predict_newest)
        self.get_logger().info(f"predicts '{robot.name}' with {len(self._pipeline.uv)} points")

    def cleanup(self) -> None:
        """Close topics and service, and forget the model."""
        for name, destroy in (
            ("_timer", self.destroy_timer),
            ("_service", self.destroy_service),
            ("_pressures", self.destroy_subscription),
            ("_clouds", self.destroy_publisher),
            ("_surfaces", self.destroy_publisher),
        ):
            if hasattr(self, name):
                destroy(getattr(self, name))
                delattr(self, name)
        self._pipeline = self._robot = None

    def health(self) -> Health:
        """Say whether predictions follow the robot."""
        if not self.is_active:
            return Health(OK, "inactive")
        silence = time.monotonic() - self._received
        if silence > self.parameters["state_timeout"]:
            return Health(WARN, "no pressures come on pressure_state; check that the driver is active")
        if self._fault:
            return Health(WARN, self._fault)
        return Health(OK, "predicting")

    def _on_pressures(self, message: ChamberPressures) -> None:
        self._newest, self._received = message, time.monotonic()

    def _predict_newest(self) -> None:
        if not self.is_active or self._newest is None or self._robot is None or self._pipeline is None:
            return
        message, self._newest = self._newest, None
        try:
            actuation = measured_actuation(self._robot, message.name, message.pressure)
        except SoftformError as error:
            self._fault = str(error)
            self.get_logger().warning(f"no prediction: {error}", throttle_duration_sec=5.0)
            return
        self._fault = ""
        frame, stamp = self.parameters["frame"], message.header.stamp
        self._surfaces.publish(predict_surface(self._pipeline, actuation, frame, stamp))
        self._clouds.publish(predict_cloud(self._pipeline, actuation, frame, stamp))

    def _on_request(self, request: PredictShape.Request, response: PredictShape.Response) -> PredictShape.Response:
        assert self._robot is not None and self._pipeline is not None
        try:
            actuation = self._robot.check_pressures(np.asarray(request.pressures, dtype=np.float64))
        except SoftformError as error:
            response.success, response.message = False, str(error)
            return response
        frame, stamp = self.parameters["frame"], self.get_clock().now().to_msg()
        response.success = True
        response.surface = predict_surface(self._pipeline, actuation, frame, stamp)
        response.cloud = predict_cloud(self._pipeline, actuation, frame, stamp)
        return response


def main() -> None:
    """Run the node until SIGINT or SIGTERM."""
    run_node(ShapePredictorNode)


if __name__ == "__main__":
    main()
