"""The predicted surface as a mesh: triangles once, vertices at rate; metres."""

import zlib
from array import array

import numpy as np
from builtin_interfaces.msg import Time
from std_msgs.msg import Header

from softform_core.arrays import Array
from softform_core.forward.surface_model import SurfaceModel
from softform_core.forward.surface_uncertainty import SurfaceUncertainty
from softform_core.robots import Robot
from softform_core.units import MM_PER_M
from softform_interfaces.msg import MeshTopology, PredictedMesh
from softform_ros import qos
from softform_ros.conversions import packed_vertices
from softform_ros.lifecycle import SoftformLifecycleNode

SIGMA = "sigma"
"""Name of the scalar with a mesh's uncertainty: one standard deviation along the normals, m."""


def topology_of(robot: Robot, model: SurfaceModel) -> MeshTopology:
    """Return the triangles between the points of a model over `PatchSet.samples`, patch by patch."""
    triangles = np.ascontiguousarray(model.patches.triangles(len(model.uv)), dtype=np.uint32)
    outputs = [surface.patch for surface in robot.surfaces]
    return MeshTopology(
        header=Header(frame_id=robot.base_frame),
        id=zlib.crc32(triangles.tobytes(), zlib.crc32(",".join(outputs).encode())),
        output=outputs,
        vertices=[len(model.uv) // len(outputs)] * len(outputs),
        triangles=array("I", triangles.tobytes()),
    )


class PredictedMeshes:
    """Topics `predicted_topology` and `predicted_mesh` of a robot with a surface."""

    def __init__(self, node: SoftformLifecycleNode, robot: Robot, model: SurfaceModel) -> None:
        self._node, self._topology = node, topology_of(robot, model)
        self._topologies = node.create_publisher(MeshTopology, "predicted_topology", qos.LATCHED_STATE)
        self._meshes = node.create_publisher(PredictedMesh, "predicted_mesh", qos.PREDICTED_SURFACE)
        self._topologies.publish(self._topology)

    def close(self) -> None:
        """Close the topics."""
        self._node.destroy_publisher(self._meshes)
        self._node.destroy_publisher(self._topologies)

    def publish(
        self, model: SurfaceModel, uncertainty: SurfaceUncertainty | None, actuation: Array, stamp: Time, stale: bool
    ) -> None:
        """Publish the shape at an actuation (m,), with its uncertainty where that is known, if anybody listens."""
        if not self._meshes.get_subscription_count():
            return
        message = PredictedMesh(
            header=Header(frame_id=self._topology.header.frame_id, stamp=stamp),
            stale=stale,
            topology=self._topology.id,
            vertices=packed_vertices(model.points(actuation) / MM_PER_M),
        )
        if uncertainty is not None:
            sigma = uncertainty.along_normals(actuation) / MM_PER_M
            message.scalar, message.values = SIGMA, array("f", sigma.astype("<f4").tobytes())
        self._meshes.publish(message)
