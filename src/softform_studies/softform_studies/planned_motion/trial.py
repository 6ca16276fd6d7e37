"""A motion planned for a scene, and what becomes of it in reality."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.planning.motion import plan_motion
from softform_core.planning.motion_plan import MotionPlan, MotionRequest, MotionSettings, NoMotionError
from softform_core.planning.obstacles import obstacle_of
from softform_core.planning.surface_margins import MarginedSurface
from softform_core.robots import Robot
from softform_core.units import MM_PER_M
from softform_rig.live_body import LiveBody
from softform_rig.reality import Reality
from softform_studies.planned_motion.scene import Scene, spread_over

CLEARANCE = 0.001
"""m that planning is asked to keep."""


@dataclass(frozen=True)
class Execution:
    """What a motion is in reality, at its waypoints: quasi-static, without the lag of the pneumatics.

    Attributes:
        shapes: (n, V, 3) m, the true surfaces.
        faces: (F, 3) triangles over them.
        clearances: (n,) m between true surface and stick; negative: how deep the surface is inside, at most the
            stick's radius.
    """

    shapes: Array
    faces: NDArray[np.integer]
    clearances: Array

    @property
    def worst(self) -> int:
        """Waypoint of the least clearance."""
        return int(self.clearances.argmin())

    @property
    def collides(self) -> bool:
        """Whether the surface meets the stick."""
        return bool(self.clearances.min() <= 0.0)


@dataclass(frozen=True)
class Drawable:
    """A motion that was planned and carried out.

    Attributes:
        plan: The motion.
        predicted: (n, P, 3) m, the surfaces that it was planned with.
        predicted_faces: (F, 3) triangles over them.
        execution: Motion in the reality.
    """

    plan: MotionPlan
    predicted: Array
    predicted_faces: NDArray[np.integer]
    execution: Execution


@dataclass(frozen=True)
class Trial:
    """A motion that was planned with one model.

    Attributes:
        surface: The model.
        plan: The motion; None if it was rejected.
        rejection: Why it was rejected; empty if it was not.
        execution: Motion in the reality; None if there is no plan.
    """

    surface: MarginedSurface
    plan: MotionPlan | None
    rejection: str = ""
    execution: Execution | None = None

    def drawable(self) -> Drawable:
        """What a picture shows.

        Raises:
            SoftformError: If the motion was rejected.
        """
        if self.plan is None or self.execution is None:
            raise SoftformError(f"The motion was rejected: {self.rejection}", "Draw another scene.")
        predicted = self.surface.pipeline.points(self.plan.actuations) / MM_PER_M
        return Drawable(self.plan, predicted, self.surface.faces, self.execution)

    def figures(self) -> dict[str, object]:
        """For the report, mm."""
        if self.plan is None or self.execution is None:
            return {"planned": False, "rejection": self.rejection}
        spare = self.plan.clearances - self.plan.margins
        return {
            "planned": True,
            "corners": len(self.plan.corners),
            "waypoints": len(self.plan.actuations),
            "duration_s": round(float(self.plan.times[-1]), 2),
            "goal_mean_error_mm": round(self.plan.goal.mean_error_mm, 3),
            "least_predicted_clearance_mm": _mm(self.plan.clearances.min()),
            "margin_kept_there_mm": _mm(self.plan.margins[spare.argmin()]),
            "least_true_clearance_mm": _mm(self.execution.clearances.min()),
            "collides": self.execution.collides,
            "plan_s": round(self.plan.seconds, 2),
            "states_checked": self.plan.states_checked,
        }


def carry_out(
    surface: MarginedSurface, robot: Robot, reality: Reality, scene: Scene, settings: MotionSettings
) -> Trial:
    """Plan a motion by one model, and follow it in reality.

    Raises:
        SoftformError: If the reality has no shape on the way.
    """
    request = MotionRequest(scene.start, scene.target, obstacle_of(scene.stick.mesh()), CLEARANCE)
    try:
        plan = plan_motion(surface, robot, request, settings)
    except NoMotionError as error:
        return Trial(surface, None, f"{error.rejection.name}: {error}")
    live = LiveBody(robot, reality)
    shapes = np.array([live.commanded_shape(actuation) for actuation in plan.actuations])
    clearances = np.array([scene.stick.distances(spread_over(shape, live.faces)).min() for shape in shapes])
    return Trial(surface, plan, "", Execution(shapes, live.faces, clearances))


def _mm(metres: float) -> float:
    return round(float(metres) * MM_PER_M, 2)
