"""Convert actuations to messages with the predicted surface; metres."""

from collections.abc import Sequence

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point, Vector3
from sensor_msgs.msg import PointCloud2
from std_msgs.msg import Header

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.forward.surface_model import SurfaceModel
from softform_core.forward.surface_uncertainty import SurfaceUncertainty
from softform_core.robots import Robot
from softform_core.units import MM_PER_M
from softform_interfaces.msg import Surface, SurfacePatch
from softform_ros.conversions import cloud_from_points


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


def predict_cloud(
    pipeline: SurfaceModel, uncertainty: SurfaceUncertainty | None, actuation: Array, frame: str, stamp: Time
) -> PointCloud2:
    """Return points of the predicted surface (Algorithm 1) as a message, with their uncertainty if there is any.

    Args:
        pipeline: Forward kinematics.
        uncertainty: Uncertainty of the points; None without sim-to-real.
        actuation: (k,).
        frame: Frame of the points.
        stamp: Time at which the values were measured.
    """
    values = {} if uncertainty is None else {"uncertainty": uncertainty.along_normals(actuation) / MM_PER_M}
    return cloud_from_points(pipeline.points(actuation) / MM_PER_M, frame, stamp, values)
