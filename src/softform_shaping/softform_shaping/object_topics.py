"""What `object_shaper` shows: the object as the controller believes it, its stress, its target, and both grippers."""

import time
import zlib

import numpy as np
from std_msgs.msg import Header
from tf2_msgs.msg import TFMessage

from softform_core.arrays import Array
from softform_core.geometry.rigid import RigidTransform
from softform_core.robots import Robot
from softform_interfaces.msg import MeshTopology, PredictedMesh, TargetMesh
from softform_ros import qos
from softform_ros.conversions import packed_vertices, stamp_from_seconds
from softform_ros.frames import transform_message
from softform_ros.lifecycle import SoftformLifecycleNode
from softform_shaping.arms import TwoArms
from softform_shaping.arms_body import GRIPPER_FRAMES, OBJECT
from softform_shaping.model import HeldModel, HeldShape
from softform_shaping.poses import motion_of

__all__ = ["STRESS", "ObjectTopics"]

STRESS = "von_mises"
"""Name of the scalar of `predicted_mesh`: stress, Pa, at each node."""


class ObjectTopics:
    """Publishers that are open until `close`; latched, for a look at the object comes once in seconds.

    Args:
        node: The node.
        robot: The arms.
        model: Of the object.
        arms: Their kinematics.
    """

    def __init__(self, node: SoftformLifecycleNode, robot: Robot, model: HeldModel, arms: TwoArms) -> None:
        self._node, self._robot, self._model, self._arms = node, robot, model, arms
        self._triangles = model.skin[model.faces].astype(np.uint32)
        content = model.rest_nodes.tobytes() + self._triangles.tobytes()
        self._topology = zlib.crc32(content)
        self._topologies = node.create_publisher(MeshTopology, "predicted_topology", qos.LATCHED_STATE)
        self._meshes = node.create_publisher(PredictedMesh, "predicted_mesh", qos.LATCHED_STATE)
        self._targets = node.create_publisher(TargetMesh, "object_target", qos.LATCHED_STATE)
        self._frames = node.create_publisher(TFMessage, "/tf", qos.TF)
        self._topologies.publish(
            MeshTopology(
                header=self._header(),
                id=self._topology,
                output=[OBJECT],
                vertices=[len(model.rest_nodes)],
                triangles=self._triangles.ravel().tolist(),
            )
        )
        self.show(model.rest_nodes, model.rest, is_stale=True)

    def close(self) -> None:
        """Close the topics."""
        for publisher in (self._topologies, self._meshes, self._targets, self._frames):
            self._node.destroy_publisher(publisher)

    def show(self, nodes: Array, shape: HeldShape, is_stale: bool = False) -> None:
        """Show the nodes (V, 3) m as they are believed to be, with the stress of the shape that was simulated.

        A shape is stale until the object is looked at: it is the one that was grasped.
        """
        self._meshes.publish(
            PredictedMesh(
                header=self._header(),
                stale=is_stale,
                topology=self._topology,
                vertices=packed_vertices(nodes),
                scalar=STRESS,
                values=self._model.nodal_stresses(shape).astype(np.float32).tolist(),
            )
        )

    def show_target(self, target: Array) -> None:
        """Show the target (V, 3) m of a goal."""
        self._targets.publish(
            TargetMesh(
                header=self._header(), vertices=packed_vertices(target), triangles=self._triangles.ravel().tolist()
            )
        )

    def show_grippers(self, joints: Array | None) -> None:
        """Tell TF where the grippers are with the joints at (12,) rad; nothing where that is not known."""
        if joints is None:
            return
        poses, now = self._arms.poses_at(joints.reshape(2, -1)).reshape(2, 6), time.time()
        told = []
        for name, pose, centre in zip(GRIPPER_FRAMES, poses, self._arms.centres, strict=True):
            motion = motion_of(pose, centre)
            place = RigidTransform(motion.rotation, motion.apply(centre))
            told.append(transform_message(self._robot.base_frame, self._robot.frame_of(name), now, place))
        self._frames.publish(TFMessage(transforms=told))

    def _header(self) -> Header:
        return Header(frame_id=self._robot.base_frame, stamp=stamp_from_seconds(time.time()))
