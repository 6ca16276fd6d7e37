"""Topics of what is shown, subscribed to while somebody looks: nothing is predicted or sent for nobody."""

import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rclpy.task import Future
from sensor_msgs.msg import PointCloud2
from tf2_msgs.msg import TFMessage
from visualization_msgs.msg import MarkerArray

from softform_client.actuator_values import values_to_message
from softform_console.robot_info import outputs_of, skin_of
from softform_console.robot_view import RobotView
from softform_console.scene_frames import PREVIEW, STALE, Kind, SceneItem
from softform_console.scene_store import FORESEEN, REST, SceneStore
from softform_console.scene_topology import MeshGrid, ObjectGrid, SkinGrid
from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.robots import ELEMENTS, Robot
from softform_interfaces.msg import (
    ActuatorCommand,
    ActuatorState,
    MarkerFrame,
    MeshTopology,
    PredictedMesh,
    ServoState,
    TargetMesh,
)
from softform_interfaces.srv import PredictShape
from softform_ros import qos
from softform_ros.conversions import points_from_cloud, positions_from_markers, seconds_from_stamp, unpacked_vertices
from softform_ros.guarded_node import GuardedNode

_LINGER_SECONDS = 10.0
"""Time for which topics stay open after the last page has gone, s: one that is loaded anew finds them open."""

_MOST_POINTS = 20_000

_TRUTH_SECONDS = 3.0
"""Age from which a true object is not shown any more, s: the rig tells none where it is not the one described."""

GRIPPERS = "left", "right"
"""Frames of grippers that hold an object, as `object_shaper` tells TF."""


class SceneTopics:
    """Subscriptions of a robot's scene and state.

    Args:
        node: Node of the console; `update` is called in the thread that spins it.
        robot: The robot.
        store: Takes what is shown.
        view: Takes what is told.
        index: Number of the robot for pages.
    """

    def __init__(self, node: GuardedNode, robot: Robot, store: SceneStore, view: RobotView, index: int = 0) -> None:
        self._node, self._robot, self._store, self._view, self._index = node, robot, store, view, index
        self._names = [output.name for output in outputs_of(robot)]
        self._holds = robot.body.held is not None
        self._frames = {robot.frame_of(name): name for name in (GRIPPERS if self._holds else robot.frames)}
        self._skin = skin_of(robot)
        self._grid: MeshGrid | SkinGrid | ObjectGrid | None = None
        self._early: PredictedMesh | None = None
        self._foreseen, self._cloud_at = 0, math.inf
        self._wanted_at = time.monotonic()
        self._open: list[Any] = []
        self._predictions = node.create_client(PredictShape, "predict_shape")

    def update(self, is_wanted: bool) -> None:
        """Open or close the topics, as somebody looks or nobody does."""
        now = time.monotonic()
        if is_wanted:
            self._wanted_at = now
        wanted = now - self._wanted_at < _LINGER_SECONDS
        if wanted and not self._open:
            self._subscribe()
        elif not wanted:
            self._unsubscribe()
        if self._holds and now - self._cloud_at > _TRUTH_SECONDS:
            self._cloud_at = math.inf
            self._store.put(SceneItem(Kind.GONE, self._index, time.time(), gone=Kind.CLOUD))

    def close(self) -> None:
        """Close the topics."""
        self._unsubscribe()
        self._node.destroy_client(self._predictions)

    def _unsubscribe(self) -> None:
        while self._open:
            self._node.destroy_subscription(self._open.pop())

    def _subscribe(self) -> None:
        def listen(kind: type, topic: str, note: Callable[[Any], None], profile: Any) -> None:
            self._open.append(self._node.create_subscription(kind, topic, note, profile))

        listen(ActuatorState, "actuator_state", self._view.note_measured, qos.ACTUATOR_STATE_READER)
        listen(ActuatorCommand, "actuator_command", self._view.note_commanded, qos.ACTUATOR_COMMAND)
        listen(ServoState, "servo_state", self._view.note_servo, qos.SERVO_STATE)
        listen(MarkerFrame, "captured_markers", self._on_markers, qos.CAPTURED_MARKERS)
        if self._frames:
            listen(TFMessage, "/tf", self._on_transforms, qos.TF)
        if self._holds:
            listen(MeshTopology, "predicted_topology", self._on_topology, qos.LATCHED_STATE)
            listen(PredictedMesh, "predicted_mesh", self._on_mesh, qos.LATCHED_STATE)
            listen(TargetMesh, "object_target", self._on_target_mesh, qos.LATCHED_STATE)
            listen(PointCloud2, "rig/true_object", self._on_cloud, qos.TRUE_SURFACE)
            return
        if self._robot.surfaces or self._skin is not None:
            listen(MeshTopology, "predicted_topology", self._on_topology, qos.LATCHED_STATE)
            listen(PredictedMesh, "predicted_mesh", self._on_mesh, qos.PREDICTED_SURFACE)
        if self._robot.body.contact is not None:
            listen(MarkerArray, "predicted_contact", self._view.note_contact, qos.PREDICTED_SURFACE)
        if self._robot.surfaces:
            listen(PointCloud2, "captured_cloud", self._on_cloud, qos.CAPTURED_CLOUD)
            listen(PointCloud2, "target_shape", self._on_target_cloud, qos.TARGET_READER)
            listen(TargetMesh, "target_mesh", self._on_target_mesh, qos.TARGET_READER)

    def _on_topology(self, message: MeshTopology) -> None:
        triangles = np.frombuffer(message.triangles, dtype=np.uint32).reshape(-1, 3)
        count = int(sum(message.vertices))
        number = message.id & 0xFFFFFFFF
        if self._holds:
            self._grid = ObjectGrid(number, count, triangles)
            if self._early is not None:
                self._on_mesh(self._early)
            return
        self._grid = self._skin_grid(number, count, ELEMENTS not in message.output)
        if self._grid is None and self._robot.surfaces:
            self._grid = MeshGrid(self._robot, number, count, triangles, self._names)
        if isinstance(self._grid, SkinGrid) and not self._robot.surfaces:  # no service predicts what it was bound to
            rests = self._grid.resting
            self._store.put(
                SceneItem(Kind.MESH, self._index, time.time(), rests, STALE, topology=self._grid.topology), REST
            )
        elif self._predictions.service_is_ready():
            rest = self._robot.actuators_of(self._robot.rest_actuation)
            asked = PredictShape.Request(actuators=values_to_message(rest, self._robot))
            self._predictions.call_async(asked).add_done_callback(self._on_rest)

    def triangles(self) -> NDArray[np.uint32] | None:
        """Return the triangles (t, 3) of what is shown; None before anything is."""
        return None if self._grid is None else self._grid.topology.triangles

    def foresee(self, values: Array | None) -> None:
        """Show the shape that is predicted at values (k,) as a preview; None: no more.

        Raises:
            SoftformError: If nothing predicts it.
        """
        self._foreseen += 1
        if values is None:
            self._store.put(SceneItem(Kind.GONE, self._index, time.time(), flags=PREVIEW, gone=Kind.MESH), FORESEEN)
            return
        if self._grid is None or not self._predictions.service_is_ready():
            raise SoftformError("Nothing predicts the robot's shape.", "See whether the node shape_predictor runs.")
        number, asked = self._foreseen, PredictShape.Request(actuators=values_to_message(values, self._robot))

        def show(done: Future) -> None:
            if number == self._foreseen and (shape := self._predicted(done, PREVIEW)):
                self._store.put(shape, FORESEEN)

        self._predictions.call_async(asked).add_done_callback(show)

    def _skin_grid(self, topology: int, count: int, is_known: bool) -> SkinGrid | None:
        """Return the skin's grid; of one that the models in use do not know what is picked is the robot's frame."""
        if self._skin is None:
            return None
        name, skin = self._skin
        if skin.samples != count:
            self._node.get_logger().warning(
                f"The skin '{name}' rides on {skin.samples} points and {count} are predicted: it is not shown. Bind it "
                f"anew{f' with --samples {count}' if self._robot.surfaces else ''}."
            )
            return None
        return SkinGrid(skin, topology, self._names.index(name) if is_known else 0)

    def _on_rest(self, done: Future) -> None:
        if rest := self._predicted(done, STALE):
            self._store.put(rest, REST)

    def _predicted(self, done: Future, flags: int) -> SceneItem | None:
        """Return the mesh of an answer of `predict_shape`, whose cloud has its points; None if there is none."""
        answer, grid = None if done.exception() else done.result(), self._grid
        if grid is None or answer is None or not answer.success:
            return None
        points = points_from_cloud(answer.cloud).astype(np.float32)
        if len(points) != grid.count:
            return None
        stamp = seconds_from_stamp(answer.cloud.header.stamp)
        return SceneItem(
            Kind.MESH, self._index, stamp, grid.shown(points), flags, topology=grid.topology, coarse=grid.coarse
        )

    def _on_mesh(self, message: PredictedMesh) -> None:
        self._early = message if self._holds else None  # of an object none may come after it for long
        grid = self._grid
        points = np.frombuffer(message.vertices, dtype=np.float32).reshape(-1, 3)
        if grid is None or message.topology & 0xFFFFFFFF != grid.source or len(points) != grid.count:
            return
        values = np.frombuffer(message.values, dtype=np.float32)
        item = SceneItem(
            Kind.MESH,
            self._index,
            seconds_from_stamp(message.header.stamp),
            grid.shown(points),
            STALE if message.stale else 0,
            grid.shown(values) if len(values) == len(points) else None,
            topology=grid.topology,
            coarse=grid.coarse,
        )
        self._store.put(item)
        if message.stale and self._holds:
            self._store.put(replace(item), REST)

    def _on_cloud(self, message: PointCloud2) -> None:
        self._cloud_at = time.monotonic()
        self._put_cloud(Kind.CLOUD, message)

    def _on_target_cloud(self, message: PointCloud2) -> None:
        self._put_cloud(Kind.TARGET, message)

    def _put_cloud(self, kind: Kind, message: PointCloud2) -> None:
        if message.header.frame_id != self._robot.base_frame:
            return
        with suppress(SoftformError):
            points = points_from_cloud(message)
            points = points[np.isfinite(points).all(axis=1)][:: 1 + len(points) // _MOST_POINTS]
            stamp = seconds_from_stamp(message.header.stamp)
            self._store.put(SceneItem(kind, self._index, stamp, points.astype(np.float32)))

    def _on_target_mesh(self, message: TargetMesh) -> None:
        if message.header.frame_id == self._robot.base_frame:
            points = unpacked_vertices(message.vertices).astype(np.float32)
            triangles = np.frombuffer(message.triangles, dtype=np.uint32).reshape(-1, 3)
            stamp = seconds_from_stamp(message.header.stamp)
            self._store.put(SceneItem(Kind.TARGET, self._index, stamp, points, triangles=triangles))

    def _on_markers(self, message: MarkerFrame) -> None:
        points = positions_from_markers(message).astype(np.float32)
        self._store.put(SceneItem(Kind.MARKERS, self._index, seconds_from_stamp(message.header.stamp), points))

    def _on_transforms(self, message: TFMessage) -> None:
        for one in message.transforms:
            if (name := self._frames.get(one.child_frame_id)) and one.header.frame_id == self._robot.base_frame:
                self._view.note_frame(name, one.transform)
