"""Models of the kind `fem`: the robot's own simulator behind everything that a learned model serves."""

from softform_core.errors import SoftformError
from softform_core.forward.robot_models import AUTO, NONE, FixedSurface, ModelRequest, RobotModels, TipModels
from softform_core.forward.simulated_surface import SimulatedSurface, SimulatedTip


def fem(request: ModelRequest) -> RobotModels:
    """Return the simulator of a robot with surfaces, or with a tip.

    Raises:
        SoftformError: If the body has no physics, or a sim-to-real model is asked for.
    """
    robot = request.robot
    if request.sim_to_real not in (AUTO, NONE):
        raise SoftformError(
            f"sim-to-real {request.sim_to_real} corrects the learned model of '{robot.name}', not its simulator.",
            "Leave sim_to_real out, or take model:=learned.",
        )
    if not robot.body.is_simulated:
        raise SoftformError(
            f"'{robot.name}' is known by data alone: it has no simulator.", "Take model:=learned for it."
        )
    if robot.surfaces:
        return FixedSurface(SimulatedSurface(robot, robot.patches.samples(request.points)), "fem")
    return TipModels(SimulatedTip.of(robot), NONE)
