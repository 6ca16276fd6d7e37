"""Convert actuations to messages with the predicted surface: splines and warp, cloud and mesh; metres."""

import zlib
from array import array
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point, Vector3
from sensor_msgs.msg import PointCloud2
from std_msgs.msg import Header

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.forward.forward_model import SurfaceModel
from softform_core.forward.surface_uncertainty import SurfaceUncertainty
from softform_core.robots import Robot
from softform_core.units import MM_PER_M
from softform_interfaces.msg import MeshTopology, PredictedMesh, Surface, SurfacePatch
from softform_ros.conversions import cloud_from_points, packed_vertices

SIGMA = "sigma"
"""Name of the scalar with a mesh's uncertainty: one standard deviation along the normals, m."""


def measured_values(robot: Robot, names: Sequence[str], values: Sequence[float]) -> Array:
    """Return measured values (k,) in the order of the robot's actuators.

    Args:
        robot: The robot.
        names: Actuator of each value.
        values: Actuator values in the robot's unit.

    Raises:
        SoftformError: If they are another robot's, or not finite.
    """
    ordered = robot.in_order(names, values)
    if not np.isfinite(ordered).all():
        raise SoftformError("A measured value is not a finite number.", "See the driver's diagnostics.")
    return ordered


def predict_surface(pipeline: SurfaceModel, names: Sequence[str], actuation: Array, frame: str, stamp: Time) -> Surface:
    """Return the control points (Eq. 14) and warp (Eqs. 2-3) as a message.

    Args:
        pipeline: Forward kinematics.
        names: Names of the patches.
        actuation: (k,).
        frame: Frame of the surface.
        stamp: Time at which the values were measured.
    """
    grids = pipeline.patches.control_grids(pipeline.control_points(actuation) / MM_PER_M)
    # alpha_0 and the betas are lengths; the columns of A are not.
    gamma = pipeline.warp_coefficients(actuation)
    scaled = gamma / MM_PER_M
    scaled[1:4] = gamma[1:4]
    return Surface(
        header=Header(frame_id=frame, stamp=stamp),
        patches=[
            SurfacePatch(
                name=name,
                **patch._asdict(),
                control_points=[Point(x=x, y=y, z=z) for x, y, z in grid.reshape(-1, 3).tolist()],
            )
            for name, patch, grid in zip(names, pipeline.patches.patches, grids, strict=True)
        ],
        kernel_width=pipeline.kernel_width * MM_PER_M**2,
        kernel_centers=[Point(x=x, y=y, z=z) for x, y, z in (pipeline.kernel_centers(actuation) / MM_PER_M).tolist()],
        warp_coefficients=[Vector3(x=x, y=y, z=z) for x, y, z in scaled.tolist()],
    )


class PredictedPoints(NamedTuple):
    """Points of the predicted surface (Algorithm 1), once for all messages that have them.

    Attributes:
        points: (P, 3) m over `PatchSet.samples`.
        sigma: (P,) m, one standard deviation along the normals; None without sim-to-real.
    """

    points: Array
    sigma: Array | None

    @classmethod
    def of(cls, pipeline: SurfaceModel, uncertainty: SurfaceUncertainty | None, actuation: Array) -> "PredictedPoints":
        """Predict them at an actuation (m,), with their uncertainty if it is known."""
        sigma = None if uncertainty is None else uncertainty.along_normals(actuation) / MM_PER_M
        return cls(pipeline.points(actuation) / MM_PER_M, sigma)

    def cloud(self, frame: str, stamp: Time) -> PointCloud2:
        """Return them as a cloud in a frame, of values measured at a time."""
        return cloud_from_points(self.points, frame, stamp, {} if self.sigma is None else {"uncertainty": self.sigma})

    def mesh(self, topology: MeshTopology, stamp: Time, stale: bool) -> PredictedMesh:
        """Return them as the vertices of a topology, of values measured at a time; the rest shape if it is `stale`."""
        message = PredictedMesh(
            header=Header(frame_id=topology.header.frame_id, stamp=stamp),
            stale=stale,
            topology=topology.id,
            vertices=packed_vertices(self.points),
        )
        if self.sigma is not None:
            message.scalar, message.values = SIGMA, array("f", self.sigma.astype("<f4").tobytes())
        return message


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
