"""The share of planned motions that collide in reality, planned without and with sim-to-real; scenes from seeds."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from softform_core.forward.live_pipeline import LivePipeline
from softform_core.paths import models_of
from softform_core.planning.motion_plan import MotionSettings
from softform_core.planning.planner_settings import Algorithm, PlannerSettings
from softform_core.planning.surface_margins import MarginedSurface
from softform_core.robots import Robot, load_robot
from softform_core.threads import one_thread
from softform_rig.reality import load_reality
from softform_studies.ik.ik_prediction import SHIPPED
from softform_studies.planned_motion.scene import GAP, Scene, scene_of
from softform_studies.planned_motion.trial import CLEARANCE, Trial, carry_out

SEEDS = 6
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


def planning() -> dict[str, object]:
    """Motion planning: motions that collide in reality, planned without and with sim-to-real (Fig. 20)."""
    with one_thread():
        return figures_of(compare(load_robot("membrane"), "default", SEEDS))


def compare(
    robot: Robot,
    reality_name: str,
    seeds: int,
    sim_to_real: Path | None = None,
    algorithm: Algorithm = "rrt_connect",
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
    settings = MotionSettings(PlannerSettings(algorithm))
    comparisons = []
    for seed in range(seeds):
        scene = scene_of(robot, reality, seed, gap)
        trials = [carry_out(surface, robot, reality, scene, settings) for surface in (simulated, learned)]
        comparisons.append(Comparison(seed, scene, *trials))
        say(f"scene {seed}: " + "; ".join(f"{n} {_said(t)}" for n, t in zip(("without", "with"), trials, strict=True)))
    return comparisons


def figures_of(comparisons: list[Comparison]) -> dict[str, object]:
    """JSON-ready figures, mm."""
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
    """What became of the motions of one model, mm."""
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
