"""Predictions of a robot with a surface: its surface on topics and by a service."""

import numpy as np
from builtin_interfaces.msg import Time
from sensor_msgs.msg import PointCloud2

from softform_client.actuator_values import values_from_message
from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.forward.history import History
from softform_core.forward.robot_models import SurfaceModels
from softform_core.forward.simulated_models import SimulatedSurface
from softform_core.robots import Robot
from softform_inference.centre_line import CentreLineTopic
from softform_inference.contact_markers import ContactMarkers
from softform_inference.point_frames import PointFrames
from softform_inference.prediction import PredictedPoints, predict_surface, topology_of
from softform_inference.surface_markers import SurfaceMarkers
from softform_interfaces.msg import MeshTopology, PredictedMesh, Surface
from softform_interfaces.srv import PredictShape
from softform_ros import qos
from softform_ros.conversions import seconds_from_stamp
from softform_ros.lifecycle import SoftformLifecycleNode


class SurfacePredictions:
    """Topics `predicted_surface`, `_cloud`, `_mesh` with its topology, `_marker`, for named points `/tf`, and the line.

    A simulation with contact has it on `predicted_contact`.

    Raises:
        SoftformError: If its models cannot be used.
    """

    def __init__(self, node: SoftformLifecycleNode, robot: Robot, models: SurfaceModels) -> None:
        self._node, self._robot = node, robot
        self._patches = [surface.patch for surface in robot.surfaces]
        self._models = models
        self._surfaces = node.create_publisher(Surface, "predicted_surface", qos.PREDICTED_SURFACE)
        self._clouds = node.create_publisher(PointCloud2, "predicted_cloud", qos.PREDICTED_SURFACE)
        self._topology = topology_of(robot, models.current)
        self._topologies = node.create_publisher(MeshTopology, "predicted_topology", qos.LATCHED_STATE)
        self._topologies.publish(self._topology)
        self._meshes = node.create_publisher(PredictedMesh, "predicted_mesh", qos.PREDICTED_SURFACE)
        self._markers = SurfaceMarkers(node, self._topology)
        self._frames = PointFrames(node, robot) if robot.frames else None
        self._line = None if robot.centre_line is None else CentreLineTopic(node, robot)
        self._contact: ContactMarkers | None = None
        simulated = models.current
        if robot.body.contact is not None and isinstance(simulated, SimulatedSurface):
            self._contact = ContactMarkers(node, robot, simulated)
        self._service = node.create_service(PredictShape, "predict_shape", self._on_request)

    def close(self) -> None:
        """Close topics and service."""
        self._node.destroy_service(self._service)
        if self._frames is not None:
            self._frames.close()
        if self._line is not None:
            self._line.close()
        if self._contact is not None:
            self._node.destroy_publisher(self._contact.publisher)
        for publisher in (self._surfaces, self._clouds, self._topologies, self._meshes, self._markers.publisher):
            self._node.destroy_publisher(publisher)

    def publish(self, history: History, actuation: Array, stamp: Time, stale: bool) -> None:
        """Publish the shape predicted at an actuation (m,) after a history, the rest one if it is `stale`."""
        frame, models = self._robot.base_frame, self._models.models
        memory = models.pipeline.memory
        state = memory.state_after(history, actuation, seconds_from_stamp(stamp))
        pipeline, actuation = models.pipeline.given(state), memory.now(state)
        if self._frames is not None:
            self._frames.publish(pipeline, actuation, stamp)
        if self._line is not None:
            self._line.publish(pipeline, actuation, stamp)
        # A prediction without subscribers would take the cores from servo and driver.
        if self._surfaces.get_subscription_count():
            surface = predict_surface(pipeline, self._patches, actuation, frame, stamp)
            surface.stale = stale
            self._surfaces.publish(surface)
        wants_cloud, wants_mesh = self._clouds.get_subscription_count(), self._meshes.get_subscription_count()
        if wants_cloud or wants_mesh or self._markers.is_due:
            predicted = PredictedPoints.of(pipeline, models.uncertainty, actuation)
            if wants_cloud:
                self._clouds.publish(predicted.cloud(frame, stamp))
            if wants_mesh:
                self._meshes.publish(predicted.mesh(self._topology, stamp, stale))
            if self._markers.is_due:
                self._markers.publish(predicted, stamp, stale)

        if self._contact is not None:
            self._contact.publish(actuation, stamp)

    def _on_request(self, request: PredictShape.Request, response: PredictShape.Response) -> PredictShape.Response:
        try:
            values = values_from_message(request.actuators, self._robot)
            commands = self._robot.check_commands(np.asarray(values, dtype=np.float64))
        except SoftformError as error:
            response.success, response.message = False, str(error)
            return response
        actuation = self._robot.nearest_actuation(commands)
        frame, stamp = self._robot.base_frame, self._node.get_clock().now().to_msg()
        response.success = True
        models = self._models.models
        pipeline, uncertainty = models.pipeline, models.uncertainty
        if request.without_sim_to_real:
            pipeline, uncertainty = self._models.simulated, None
        response.surface = predict_surface(pipeline, self._patches, actuation, frame, stamp)
        response.cloud = PredictedPoints.of(pipeline, uncertainty, actuation).cloud(frame, stamp)
        return response
