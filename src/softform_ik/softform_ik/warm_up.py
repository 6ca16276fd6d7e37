"""Pays once, before the first goal, for what only the first solve pays for: compiled kernels and loaded libraries."""

from softform_core.forward.robot_models import SurfaceModels
from softform_core.inverse.ik_options import IkOptions
from softform_core.inverse.inverse import solve_inverse_kinematics
from softform_core.robots import Robot
from softform_core.shapes.shape import Shape
from softform_core.units import MM_PER_M


def warm_up(models: SurfaceModels, robot: Robot) -> None:
    """Solve for the robot's own resting shape, as a mesh and as a cloud, with each of its models."""
    options = IkOptions(robot.actuation_min, robot.actuation_max, max_iterations=2, fix_pose=False)
    for pipeline in {id(one): one for one in (models.simulated, models.current)}.values():
        points = pipeline.points(robot.actuation_min) / MM_PER_M
        solve_inverse_kinematics(pipeline, Shape(points, None, pipeline.patches.triangles(len(points))), options)
        solve_inverse_kinematics(pipeline, Shape(points), options)
