"""Predictions of a robot with a tip: where its frame stands, on /tf, and the frames along its body, for skins."""

import zlib
from contextlib import suppress

import numpy as np
from builtin_interfaces.msg import Time
from std_msgs.msg import Header
from tf2_msgs.msg import TFMessage

from softform_core.arrays import Array
from softform_core.forward.history import History
from softform_core.forward.robot_models import TipModels
from softform_core.geometry.rigid import RigidTransform
from softform_core.robots import BONES, ELEMENTS, TIP, Robot
from softform_core.simulation.newton import NoEquilibriumError, find_equilibria
from softform_core.simulation.simulated_body import BodyOfBones, TurningBody
from softform_core.units import MM_PER_M
from softform_inference.centre_line import CentreLineTopic
from softform_interfaces.msg import MeshTopology, PredictedMesh
from softform_ros import qos
from softform_ros.conversions import packed_vertices, seconds_from_stamp
from softform_ros.frames import transform_message
from softform_ros.lifecycle import SoftformLifecycleNode


class TipPredictions:
    """The frame `ROBOT/tip` on `/tf`: the place by the learned model, the axes by the simulated body.

    Where the body has elements, their frames are published as `predicted_mesh` without triangles, three points each: a
    skin rides on them (`skin.bind`). They are the output `BONES` of models that know it, whose points of a skin can be
    asked for, and by the simulation alone, as `ELEMENTS`, of others.

    The axes are the base's at rest, and turn with the tip as that of the simulation does; sim-to-real does not change
    them. If a body does not tell how its frames turn, they keep the base's rotation. Models with a centre line have it
    on `predicted_centre_line`.

    Raises:
        SoftformError: If its model cannot be used.
    """

    def __init__(self, node: SoftformLifecycleNode, robot: Robot, models: TipModels) -> None:
        self._node, self._robot = node, robot
        self._model, self._models = models.tip, models
        self._line = CentreLineTopic(node, robot) if models.has_line else None
        body = robot.body.simulator() if robot.body.is_simulated else None
        self._body = body if isinstance(body, TurningBody) else None
        self._unknowns = np.empty(0) if body is None else body.rest
        self._turn(robot.rest_actuation)  # what is compiled, is compiled before the first prediction
        self._frames = node.create_publisher(TFMessage, "/tf", qos.TF)
        self._topology = self._bones_topology()
        self._topologies = node.create_publisher(MeshTopology, "predicted_topology", qos.LATCHED_STATE)
        self._meshes = node.create_publisher(PredictedMesh, "predicted_mesh", qos.PREDICTED_SURFACE)
        if self._topology is not None:
            self._topologies.publish(self._topology)

    def close(self) -> None:
        """Close the topics."""
        if self._line is not None:
            self._line.close()
        for publisher in (self._frames, self._topologies, self._meshes):
            self._node.destroy_publisher(publisher)

    def publish(self, history: History, actuation: Array, stamp: Time, stale: bool) -> None:
        """Tell where the tip is at an actuation (m,) after a history, in z = 0 if planar.

        A frame cannot say that it is `stale`.
        """
        memory = self._model.memory
        actuation = memory.now(memory.state_after(history, actuation, seconds_from_stamp(stamp)))
        if self._line is not None:
            self._line.publish(self._models.current, actuation, stamp)
        place = np.zeros(3)
        place[: self._model.dimensions] = self._model.tip(actuation) / MM_PER_M
        robot = self._robot
        tip = RigidTransform(self._turn(actuation), place)
        transform = transform_message(robot.base_frame, robot.frame_of(TIP), seconds_from_stamp(stamp), tip)
        self._frames.publish(TFMessage(transforms=[transform]))
        if self._topology is not None and self._meshes.get_subscription_count():
            points = self._bones_at(actuation)
            header = Header(frame_id=robot.base_frame, stamp=stamp)
            mesh = PredictedMesh(
                header=header, stale=stale, topology=self._topology.id, vertices=packed_vertices(points)
            )
            self._meshes.publish(mesh)

    def _bones_topology(self) -> MeshTopology | None:
        """Return the topology of the frames along the body, which have no triangles; None if it has none."""
        if not isinstance(self._body, BodyOfBones):
            return None
        count = int(self._body.bones(self._unknowns[None]).size) // 3
        output = ELEMENTS if self._models.bones is None else BONES
        return MeshTopology(
            header=Header(frame_id=self._robot.base_frame),
            id=zlib.crc32(f"{output} {self._robot.name} {count}".encode()),
            output=[output],
            vertices=[count],
        )

    def _bones_at(self, actuation: Array) -> Array:
        """Return the places (P, 3) m of the frames along the body at an effective actuation (m,)."""
        assert isinstance(self._body, BodyOfBones)
        if self._models.bones is not None:
            with suppress(NoEquilibriumError):  # the last ones stay, as the axes do
                return np.asarray(self._models.bones.forward(actuation[None]).points[0]) / MM_PER_M
        return self._body.bones(self._unknowns[None])[0].reshape(-1, 3)

    def _turn(self, actuation: Array) -> Array:
        """Return the rotation of the tip from rest, (3, 3); the last one where there is no equilibrium."""
        if self._body is None:
            return np.eye(3)
        found = find_equilibria(self._body, self._robot.actuators_of(actuation)[None], self._unknowns[None])
        if found.found[0]:
            self._unknowns = found.unknowns[0]
        return np.asarray(self._body.turns(self._unknowns[None])[0, list(self._body.frames).index(TIP)])
