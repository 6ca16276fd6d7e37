"""Motions planned for scenes without and with sim-to-real, what becomes of them in reality, and how many collide."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.forward.live_pipeline import LivePipeline
from softform_core.paths import models_of
from softform_core.planning.goals import PointGoal
from softform_core.planning.motion import plan_motion
from softform_core.planning.motion_plan import MotionRequest, MotionSettings, NoMotionError
from softform_core.planning.obstacles import obstacle_of
from softform_core.planning.surface_margins import MarginedSurface
from softform_core.robots import Robot
from softform_core.units import MM_PER_M
from softform_rig.live_body import LiveBody
from softform_rig.reality import Reality, load_reality
from softform_studies.ik.ik_prediction import SHIPPED
from softform_studies.planned_motion.scene import GAP, Scene, scene_of, spread_over

CLEARANCE = 0.001
"""Clearance that planning is asked to keep, m."""

_DRAWN = 9
"""Shapes of a motion that are kept for its picture, beside the nearest one."""


@dataclass(frozen=True)
class Motion:
    """A motion that was planned and carried out: quasi-static, without the lag of the pneumatics.

    Attributes:
        times: (n,) s of the waypoints.
        margins: (n,) m that were kept of the predicted surface.
        predicted_clearances: (n,) m between predicted surface and stick.
        clearances: (n,) m between true surface and stick; negative: how deep the surface is inside, at most the stick's
            radius.
        drawn: (m,) waypoints whose shapes are kept, the one of the least true clearance among them.
        predicted: (m, P, 3) m, the surface that it was planned with.
        predicted_faces: (F, 3) triangles over it.
        shapes: (m, V, 3) m, the true surface.
        faces: (F, 3) triangles over it.
        predicted_goal_error: m, mean distance from the goal at the end, as predicted.
        goal_error: m, that of the true surface from a place to touch; NaN for a target shape.
        corners: Actuations between which the motion is straight.
        seconds: Duration of planning.
        states_checked: Surfaces measured in planning.
    """

    times: Array
    margins: Array
    predicted_clearances: Array
    clearances: Array
    drawn: NDArray[np.int64]
    predicted: Array
    predicted_faces: NDArray[np.integer]
    shapes: Array
    faces: NDArray[np.integer]
    predicted_goal_error: float
    goal_error: float
    corners: int
    seconds: float
    states_checked: int

    @property
    def worst(self) -> int:
        """Place in `drawn` of the least true clearance."""
        return int(self.clearances[self.drawn].argmin())

    @property
    def collides(self) -> bool:
        """Whether the true surface meets the stick."""
        return bool(self.clearances.min() <= 0.0)

    @property
    def outcome(self) -> str:
        """Outcome of the motion in reality, in words."""
        least = MM_PER_M * float(self.clearances.min())
        return f"collides, {-least:.1f} mm deep" if self.collides else f"clear by {least:.1f} mm"


@dataclass(frozen=True)
class Trial:
    """A motion that was planned with one model.

    Attributes:
        motion: The motion; None if there is none.
        rejection: Reason why there is none; empty if there is one.
    """

    motion: Motion | None
    rejection: str = ""

    def drawable(self) -> Motion:
        """Return the motion.

        Raises:
            SoftformError: If there is none.
        """
        if self.motion is None:
            raise SoftformError(f"The motion was rejected: {self.rejection}", "Draw another scene.")
        return self.motion

    def figures(self) -> dict[str, object]:
        """Return the figures for the report, mm."""
        motion = self.motion
        if motion is None:
            return {"planned": False, "rejection": self.rejection}
        found: dict[str, object] = {
            "planned": True,
            "corners": int(motion.corners),
            "waypoints": len(motion.times),
            "duration_s": round(float(motion.times[-1]), 2),
            "goal_mean_error_mm": round(float(motion.predicted_goal_error) * MM_PER_M, 3),
            "least_predicted_clearance_mm": _mm(motion.predicted_clearances.min()),
            "margin_kept_there_mm": _mm(motion.margins[(motion.predicted_clearances - motion.margins).argmin()]),
            "least_true_clearance_mm": _mm(motion.clearances.min()),
            "collides": motion.collides,
            "plan_s": round(float(motion.seconds), 2),
            "states_checked": int(motion.states_checked),
        }
        return found if np.isnan(motion.goal_error) else found | {"true_goal_error_mm": _mm(motion.goal_error)}

    @property
    def values(self) -> Mapping[str, Any]:
        """Return the values that `of` reads it from again: arrays, numbers and texts by their names."""
        return {"rejection": self.rejection} if self.motion is None else vars(self.motion)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Return the trial of these values."""
        return cls(None, str(values["rejection"])) if "rejection" in values else cls(Motion(**values))


def carry_out(
    surface: MarginedSurface, robot: Robot, reality: Reality, scene: Scene, settings: MotionSettings
) -> Trial:
    """Plan a motion by one model, and follow it in reality.

    Raises:
        SoftformError: If the reality has no shape on the way.
    """
    request = MotionRequest(scene.start, scene.goal, obstacle_of(scene.stick.mesh()), CLEARANCE)
    try:
        plan = plan_motion(surface, robot, request, settings)
    except NoMotionError as error:
        return Trial(None, f"{error.rejection.name}: {error}")
    live = LiveBody(robot, reality)
    shapes = np.array([live.commanded_shape(actuation) for actuation in plan.actuations])
    clearances = np.array([scene.stick.distances(spread_over(shape, live.faces)).min() for shape in shapes])
    drawn = np.unique([*np.linspace(0, len(shapes) - 1, _DRAWN).astype(np.int64), clearances.argmin()])
    motion = Motion(
        times=plan.times,
        margins=plan.margins,
        predicted_clearances=plan.clearances,
        clearances=clearances,
        drawn=drawn,
        predicted=surface.pipeline.points(plan.actuations[drawn]) / MM_PER_M,
        predicted_faces=surface.faces,
        shapes=shapes[drawn],
        faces=live.faces,
        predicted_goal_error=plan.goal.mean_error_mm / MM_PER_M,
        goal_error=_missed_by(robot, live, shapes[-1], scene.goal) if isinstance(scene.goal, PointGoal) else np.nan,
        corners=len(plan.corners),
        seconds=plan.seconds,
        states_checked=plan.states_checked,
    )
    return Trial(motion)


def _missed_by(robot: Robot, live: LiveBody, shape: Array, goal: PointGoal) -> float:
    """Return the distance of the named point of a true surface (V, 3) m from where it shall be, m."""
    control = robot.parametrised(live.rest, live.faces).fit(shape[None])
    points = robot.patches.evaluate(control, robot.point_parameters(goal.point))[0]
    return float(np.linalg.norm(points.mean(axis=0) - goal.place))


def _mm(metres: float) -> float:
    return round(float(metres) * MM_PER_M, 2)


SURFACE_POINTS = 41**2


@dataclass(frozen=True, eq=False)
class Comparison:
    """One scene, planned both ways.

    Attributes:
        seed: Seed of the scene.
        scene: The task.
        without: Trial with the simulated surface alone, taken as exact.
        with_sim_to_real: Trial with the learned reality and its uncertainty.
    """

    seed: int
    scene: Scene
    without: Trial
    with_sim_to_real: Trial


def compare(
    robot: Robot,
    reality_name: str,
    seeds: int,
    sim_to_real: Path | None = None,
    gap: float = GAP,
    say: Callable[[str], None] = lambda line: None,
) -> list[Comparison]:
    """Plan and carry out scenes 0 ... seeds - 1; none is left out.

    The model of the reality, given by name or path, is in the folder `sim_to_real`; None for the one that ships for the
    default. `gap` is m between target shape and stick.

    Raises:
        SoftformError: If a model is missing, or the reality has no shape somewhere.
    """
    reality = load_reality(reality_name, robot)
    folder = models_of(robot.name) / SHIPPED if sim_to_real is None else sim_to_real
    models = LivePipeline(robot, SURFACE_POINTS, sim_to_real=str(folder))
    simulated = MarginedSurface(models.simulated, None)
    learned = MarginedSurface(models.current, models.models.uncertainty)
    comparisons = []
    for seed in range(seeds):
        scene = scene_of(robot, reality, seed, gap)
        trials = [carry_out(surface, robot, reality, scene, MotionSettings()) for surface in (simulated, learned)]
        comparisons.append(Comparison(seed, scene, *trials))
        say(f"scene {seed}: " + "; ".join(f"{n} {_said(t)}" for n, t in zip(("without", "with"), trials, strict=True)))
    return comparisons


def figures_of(comparisons: list[Comparison]) -> dict[str, object]:
    """Return JSON-ready figures, mm."""
    return {
        "scenes": len(comparisons),
        "clearance_asked_mm": 1000.0 * CLEARANCE,
        "without_sim_to_real": summary([one.without for one in comparisons]),
        "with_sim_to_real": summary([one.with_sim_to_real for one in comparisons]),
        "of_each": [
            {"seed": one.seed, "without": one.without.figures(), "with": one.with_sim_to_real.figures()}
            for one in comparisons
        ],
    }


def summary(trials: list[Trial]) -> dict[str, object]:
    """Summarise the outcomes of the motions of one model, mm."""
    motions = [trial.motion for trial in trials if trial.motion is not None]
    if not motions:
        return {"planned": 0}
    least = [1000.0 * float(motion.clearances.min()) for motion in motions]
    return {
        "planned": len(motions),
        "collide": sum(motion.collides for motion in motions),
        "collide_share": round(sum(motion.collides for motion in motions) / len(motions), 3),
        "keep_clearance": sum(one >= 1000.0 * CLEARANCE for one in least),
        "least_true_clearance_mm": round(min(least), 2),
        "mean_least_true_clearance_mm": round(sum(least) / len(least), 2),
    }


def _said(trial: Trial) -> str:
    if trial.motion is None:
        return f"rejected ({trial.rejection.split(':')[0]})"
    least = 1000.0 * trial.motion.clearances.min()
    return f"{'collides' if trial.motion.collides else 'clear'}, {least:+.2f} mm"
