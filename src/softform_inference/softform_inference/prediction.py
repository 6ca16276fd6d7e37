"""From pressures to the predicted surface as messages; metres and Pa."""

from collections.abc import Sequence

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point, Vector3
from sensor_msgs.msg import PointCloud2
from std_msgs.msg import Header

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.forward.pipeline import ForwardPipeline
from softform_core.forward.surface_uncertainty import SurfaceUncertainty
from softform_core.robots import Robot
from softform_core.units import MM_PER_M
from softform_interfaces.msg import Surface
from softform_ros.conversions import cloud_from_points


def measured_actuation(robot: Robot, names: Sequence[str], pressures: Sequence[float]) -> Array:
    """Measured pressures in the order of the robot's chambers, within its working range.

    A vented chamber reads a little below zero and a full one a little above its range; N_fk knows only the range.

    Args:
        robot: Robot whose chambers are named.
        names: Chamber of each pressure.
        pressures: Pa.

    Returns:
        The actuation, (m,) Pa.

    Raises:
        SoftformError: If they are another robot's, or not finite.
    """
    pressure_of = dict(zip(names, pressures, strict=False))
    if len(names) != len(pressures) or sorted(pressure_of) != sorted(robot.actuators):
        raise SoftformError(
            f"Pressures of {len(names)} chambers ({', '.join(names) or 'unnamed'}) came, "
            f"'{robot.name}' has {', '.join(robot.actuators)}.",
            "Start driver and predictor for the same robot.",
        )
    ordered = np.array([pressure_of[name] for name in robot.actuators], dtype=np.float64)
    if not np.isfinite(ordered).all():
        raise SoftformError("A measured pressure is not a finite number.", "See the driver's diagnostics.")
    return robot.nearest_actuation(ordered)


def predict_surface(pipeline: ForwardPipeline, patch: str, actuation: Array, frame: str, stamp: Time) -> Surface:
    """Control points (Eq. 14) and warp (Eqs. 2-3) as a message.

    Args:
        pipeline: Forward kinematics.
        patch: Name of the patch.
        actuation: (k,) Pa.
        frame: Frame of the surface.
        stamp: When the pressures were measured.
    """
    control_points = pipeline.control_points(actuation).reshape(-1, 3) / MM_PER_M
    # alpha_0 and the betas are lengths; the columns of A are not.
    gamma = pipeline.warp_coefficients(actuation)
    scaled = gamma / MM_PER_M
    scaled[1:4] = gamma[1:4]
    return Surface(
        header=Header(frame_id=frame, stamp=stamp),
        patch=patch,
        rows=pipeline.patch.rows,
        cols=pipeline.patch.cols,
        degree=pipeline.patch.degree,
        periodic=pipeline.patch.periodic,
        control_points=[Point(x=x, y=y, z=z) for x, y, z in control_points.tolist()],
        kernel_width=pipeline.kernel_width * MM_PER_M**2,
        kernel_centers=[Point(x=x, y=y, z=z) for x, y, z in (pipeline.kernel_centers(actuation) / MM_PER_M).tolist()],
        warp_coefficients=[Vector3(x=x, y=y, z=z) for x, y, z in scaled.tolist()],
    )


def predict_cloud(
    pipeline: ForwardPipeline, uncertainty: SurfaceUncertainty | None, actuation: Array, frame: str, stamp: Time
) -> PointCloud2:
    """Points of the predicted surface (Algorithm 1) as a message, with their uncertainty if there is any.

    Args:
        pipeline: Forward kinematics.
        uncertainty: Of its points; None without sim-to-real.
        actuation: (k,) Pa.
        frame: Frame of the points.
        stamp: When the pressures were measured.
    """
    values = {} if uncertainty is None else {"uncertainty": uncertainty.along_normals(actuation) / MM_PER_M}
    return cloud_from_points(pipeline.points(actuation) / MM_PER_M, frame, stamp, values)
