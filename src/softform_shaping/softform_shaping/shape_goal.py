"""Goals of `shape_object`: checked, and what became of them."""

from dataclasses import dataclass

import numpy as np

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.simulation.newton import NoEquilibriumError
from softform_core.text import LONGEST_MESSAGE, printable
from softform_core.units import MM_PER_M
from softform_interfaces.action import ShapeObject
from softform_ros.conversions import points_from_cloud
from softform_ros.goal_error import GoalCode, GoalError, Outcome, in_code
from softform_shaping.guard import StressError
from softform_shaping.preparation import CONTROLLERS
from softform_shaping.session import Shaped

__all__ = ["ShapeGoal", "goal_from_message", "result_of"]

_FARTHEST = 10.0
"""m; what lies farther off was given in millimetres."""


@dataclass(frozen=True, eq=False)
class ShapeGoal:
    """A checked goal.

    Attributes:
        poses: (12,) of the grippers, of which the model makes the target; None with `nodes`.
        nodes: (V, 3) m, the target itself.
        controller: Name.
        iterations: At most.
        stress_limit: Pa; infinite for none.
    """

    poses: Array | None
    nodes: Array | None
    controller: str
    iterations: int
    stress_limit: float


@in_code(GoalCode.INVALID_GOAL)
def goal_from_message(message: ShapeObject.Goal, nodes: int, iterations: int, stress_limit: float) -> ShapeGoal:
    """Check a goal for an object whose model has so many nodes; `iterations` and `stress_limit` are the usual ones.

    Raises:
        GoalError: If it cannot be meant.
    """
    has_target = message.target.width * message.target.height > 0
    if has_target == (len(message.gripper_poses) > 0):
        raise GoalError(
            GoalCode.INVALID_TARGET,
            f"The goal has {'both' if has_target else 'neither'} a target {'and' if has_target else 'nor'} poses.",
            "Give gripper_poses, or target.",
        )
    name = message.controller or "ours"
    if name not in CONTROLLERS:
        raise SoftformError(f"There is no controller '{printable(name)}'.", f"Known: {', '.join(CONTROLLERS)}.")
    limit = message.stress_limit or stress_limit
    if not limit > 0.0:  # NaN, too
        raise SoftformError(f"stress_limit is {message.stress_limit} Pa.", "Give a stress above 0, or 0 for the usual.")
    poses, target = None, None
    with in_code(GoalCode.INVALID_TARGET):
        if has_target:
            target = points_from_cloud(message.target)
            if target.shape != (nodes, 3) or not np.isfinite(target).all() or np.abs(target).max() > _FARTHEST:
                raise SoftformError(
                    f"The target has {len(target)} points, the object's model {nodes} nodes.",
                    "Give where each node shall be, m, in their order; or gripper_poses.",
                )
        else:
            poses = np.array(message.gripper_poses, dtype=np.float64)
            if poses.shape != (12,) or not np.isfinite(poses).all() or np.abs(poses).max() > _FARTHEST:
                raise SoftformError(
                    f"{len(poses)} numbers are no poses of two grippers.",
                    "Give x, y, z in m and a rotation vector in rad of each, relative to the grasp.",
                )
    return ShapeGoal(poses, target, name, message.iterations or iterations, limit)


def result_of(shaped: Shaped) -> tuple[Outcome, ShapeObject.Result]:
    """What became of a goal, and its result message but for the code."""
    result = ShapeObject.Result(ended=printable(shaped.ended, LONGEST_MESSAGE), iterations=len(shaped.iterations))
    result.reported_rms = result.reported_error = result.true_rms = result.true_max = result.stress = float("nan")
    result.travel = float(shaped.travel)
    if shaped.iterations:
        last = shaped.last
        result.reported_rms, result.reported_error = last.estimate.rms / MM_PER_M, float(last.estimate.error)
        result.true_rms, result.true_max = last.true_rms / MM_PER_M, last.true_max / MM_PER_M
        result.stress, result.gripper_poses = float(last.stress), last.poses.tolist()
    return Outcome(*_end(shaped)), result


def _end(shaped: Shaped) -> tuple[GoalCode, str]:
    error = shaped.error
    if error is None:
        return GoalCode.NONE, ""
    if isinstance(error, GoalError):
        return error.code, str(error)
    if isinstance(error, StressError):
        return GoalCode.OVERSTRESSED, str(error)
    is_unsolved = isinstance(error, NoEquilibriumError)
    return GoalCode.SOLVER_FAILED if is_unsolved else GoalCode.CAPTURE_INVALID, str(error)
