"""Fig. 20: the soft manipulator touches a ball past a stick, planned by the simulation alone and with sim-to-real."""

from collections.abc import Callable
from functools import cache

import numpy as np

from softform_core.errors import SoftformError
from softform_core.forward.robot_pipeline import load_pipeline
from softform_core.forward.surface_uncertainty import SurfaceUncertainty
from softform_core.kept import kept_arrays
from softform_core.planning.motion_plan import MotionSettings
from softform_core.planning.surface_margins import MarginedSurface
from softform_core.units import MM_PER_M
from softform_studies.planned_motion.bench import CLEARANCE, SURFACE_POINTS, Comparison, Trial, carry_out
from softform_studies.planned_motion.picture import draw_comparison, pictured
from softform_studies.planned_motion.scene import KINDS, TIP, Scene, arm_scene
from softform_studies.studies.catalogue import BEFORE, OURS, Outcome, Setting
from softform_studies.studies.laboratory import identity, learn

SPACING = 0.008
"""Distance of the waypoints at which the true arm is solved, m; between them it may come 0.3 mm nearer to the stick."""

_SCENES = 5
"""Scenes of each kind."""

_HELD_OUT = 20

_VERSION = 1
"""Version of how scenes are made and motions are planned."""


def stick(setting: Setting) -> Outcome:
    """Plan scenes of both kinds by both models, and carry all motions out in the reality; none is left out.

    Raises:
        SoftformError: If the robot has no tip, a model is missing, the reality has no shape, or training fails.
    """
    robot = setting.robot
    if TIP not in robot.frames:
        raise SoftformError(f"Robot '{robot.name}' has no point '{TIP}'.", "Take an arm, or name one in its `frames`.")
    simulated = MarginedSurface(load_pipeline(robot, SURFACE_POINTS), None)
    models: dict[str, Callable[[], MarginedSurface]] = {
        BEFORE: lambda: simulated,
        OURS: cache(lambda: _learned(setting)),  # not needed where all motions are there already
    }
    scenes = [(kind, seed) for seed in range(setting.scale.pick(_SCENES, 1)) for kind in KINDS]
    drawn = {(kind, seed): arm_scene(robot, simulated.pipeline, seed, kind) for kind, seed in scenes}
    trials: dict[tuple[str, int, str], Trial] = {}
    cells = [(f"{kind} {seed}, {series}", (kind, seed, series)) for kind, seed in scenes for series in models]
    for kind, seed, series in setting.each(cells, "stick", "motion"):
        trials[kind, seed, series] = _trial(setting, drawn[kind, seed], (kind, seed), series, models[series])
    comparisons = [
        Comparison(seed, scene, *(trials[kind, seed, series] for series in models))
        for (kind, seed), scene in drawn.items()
    ]
    entries = []
    for series in models:
        for kind in KINDS:
            of = {seed: trials[kind, seed, series] for each, seed in scenes if each == kind}
            entries.append({"series": series, "x": kind, **_figures(list(of.values()))})
            entries += [{"series": series, "x": f"{kind} {seed}", **_figures([one])} for seed, one in of.items()]
    chosen = pictured(comparisons)
    kind, seed = scenes[comparisons.index(chosen)]
    return Outcome(entries, draw_comparison(chosen), f"scene '{kind} {seed}' of {len(scenes)}")


def _trial(
    setting: Setting, scene: Scene, drawn: tuple[str, int], series: str, model: Callable[[], MarginedSurface]
) -> Trial:
    """Return a motion of a scene: from its file, or planned and carried out now and written there."""
    robot, frames = setting.robot, setting.scale.frames if series == OURS else None
    settings = {"version": _VERSION, "scene": drawn, "spacing": SPACING, **identity(setting, frames)}
    how = MotionSettings(waypoint_spacing=SPACING)
    folder = setting.folder / "stick"
    return Trial.of(
        kept_arrays(folder, settings, lambda: carry_out(model(), robot, setting.reality, scene, how).values)
    )


def _learned(setting: Setting) -> MarginedSurface:
    """Return the surface as it is learned from frames of the reality, with its uncertainty."""
    learned = learn(setting, setting.scale.frames, _HELD_OUT)
    pipeline, trained = learned.pipeline(setting.robot, SURFACE_POINTS), learned.trained
    spread = trained.spread_factor, trained.spread_floor_mm
    return MarginedSurface(pipeline, SurfaceUncertainty(pipeline, trained.members, *spread))


def _figures(trials: list[Trial]) -> dict[str, float | None]:
    """Return the numbers of motions, and mm; None where no motion was planned."""
    motions = [trial.motion for trial in trials if trial.motion is not None]
    clearances = [MM_PER_M * float(motion.clearances.min()) for motion in motions]
    misses = [MM_PER_M * float(motion.goal_error) for motion in motions]
    return {
        "scenes": len(trials),
        "planned": len(motions),
        "collide": sum(motion.collides for motion in motions),
        "keep_clearance": sum(one >= MM_PER_M * CLEARANCE for one in clearances),
        "least_clearance_mm": round(min(clearances), 2) if motions else None,
        "median_clearance_mm": round(float(np.median(clearances)), 2) if motions else None,
        "mean_tip_miss_mm": round(float(np.mean(misses)), 2) if motions else None,
        "max_tip_miss_mm": round(max(misses), 2) if motions else None,
    }
