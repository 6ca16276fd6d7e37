"""Figs. 21, 22 and 24: the true mannequin as it is brought to ten torsos, without and with sim-to-real and ICP.

The paper scans its mannequin; here its true surface is compared, in the pose that fits best, as inverse kinematics
compares the predicted one. The torsos are those of `./softform bench torsos`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.evaluation.drawing import MEASURED_COLOUR, PALETTE, PREDICTED_COLOUR, REST_COLOUR
from softform_core.forward.corrected_pipeline import CorrectedPipeline
from softform_core.forward.forward_model import SurfaceModel
from softform_core.forward.pipeline import ForwardPipeline
from softform_core.forward.robot_pipeline import SURFACE_POINTS, load_pipeline
from softform_core.inverse.closest_points import closest_points_on
from softform_core.inverse.ik_options import IkOptions
from softform_core.inverse.inverse import solve_prepared
from softform_core.kept import kept_arrays
from softform_core.robots import Robot
from softform_core.units import MM_PER_M
from softform_rig.live_body import LiveBody
from softform_rig.reality import Reality
from softform_studies.ik.ik_solver import from_rest
from softform_studies.studies.catalogue import BEFORE, OURS, Outcome, Setting
from softform_studies.studies.laboratory import identity, learn
from softform_studies.torsos.bench import torso_pipeline
from softform_studies.torsos.picture import ERROR_COLOURS, FRONT, SCALE_MM, SKIN, draw_panel, error_colours
from softform_studies.torsos.targets import BODIES, TorsoTarget, draw_bodies, torso_targets

AT_REST, HELD = "at rest", "sim-to-real, target held"
"""Ways: the mannequin left at rest, and a solution without ICP, where the target stays put."""

ALL = "all of its size"

_COLOURS = {AT_REST: REST_COLOUR, BEFORE: MEASURED_COLOUR, HELD: PALETTE[5], OURS: PREDICTED_COLOUR}
_LEARNED = (HELD, OURS)
_HELD_OUT = 2
_VERSION = 1


@dataclass(frozen=True)
class Reached:
    """The true mannequin at a solution.

    Attributes:
        history: (n,) mm, mean error after each iteration, as predicted.
        points: (P, 3) mm of the true surface.
        distances: (P,) mm from the posed target.
        covered: (P,) points that have a counterpart on it.
        mean: mm over these.
        max: mm over these.
    """

    history: Array
    points: Array
    distances: Array
    covered: NDArray[np.bool_]
    mean: float
    max: float


def torsos(setting: Setting) -> Outcome:
    """Solve for each torso by both models, and compare what the true mannequin becomes.

    Raises:
        SoftformError: If `anny` or a model is missing, the reality has no shape at a solution, or training fails.
    """
    robot, scale = setting.robot, setting.scale
    simulated = load_pipeline(robot, SURFACE_POINTS)
    learned = cache(lambda: learn(setting, scale.frames, _HELD_OUT).pipeline(robot, SURFACE_POINTS))
    targets = torso_targets(robot, torso_pipeline(robot), draw_bodies(BODIES, 0), *scale.pick((7, 3), (1, 0)))
    found: dict[tuple[str, str], Reached] = {}
    cells = [(f"{target.name}, {way}", (target, way)) for target in targets for way in _COLOURS]
    for target, way in setting.each(cells, "torsos", "shape"):
        found[way, target.name] = _kept(setting, target, way, learned if way in _LEARNED else lambda: simulated)
    entries = [
        {"series": way, "x": name, **_figures([found[way, one.name] for one in some])}
        for way in _COLOURS
        for name, some in ((ALL, [one for one in targets if one.fits]), *((one.name, [one]) for one in targets))
    ]
    return Outcome(entries, _draw(robot, targets, found), f"{scale.frames} frames learned from")


def _kept(setting: Setting, target: TorsoTarget, way: str, model: Callable[[], ForwardPipeline]) -> Reached:
    """Return the result of a way: from its file, or solved now and written there."""
    frames = setting.scale.frames if way in _LEARNED else None
    settings = {"version": _VERSION, "way": way, "target": target.shape.points.tolist(), **identity(setting, frames)}

    def make() -> dict[str, Any]:
        return vars(_reached(setting.robot, setting.reality, model(), target, way))

    return Reached(**kept_arrays(setting.folder / "torsos", settings, make))


def _reached(robot: Robot, reality: Reality, model: ForwardPipeline, target: TorsoTarget, way: str) -> Reached:
    """Solve by a model, bring the true mannequin there, and compare it with the target in the pose that fits it."""
    search = closest_points_on(target.shape)
    options = replace(from_rest(robot), fix_pose=way == HELD)
    start = options.start()
    bounded = _held_at(options, start) if way == AT_REST else options
    solved = solve_prepared(model, search, bounded)
    live = LiveBody(robot, reality)
    shape = live.commanded_shape(solved.actuation)
    control = MM_PER_M * robot.parametrised(live.rest, live.faces).fit(shape)

    def displacement(pipeline: SurfaceModel) -> Array:
        return robot.patches.evaluate(control, pipeline.uv) - pipeline.points(solved.actuation)

    measured = CorrectedPipeline(model, displacement)  # at this actuation its points are the true ones
    posed = solve_prepared(measured, search, replace(_held_at(options, solved.actuation), initial_pose=solved.pose))
    history = np.array([one.mean_error_mm for one in solved.history])
    return Reached(
        history, posed.points, posed.matches.distances, posed.covered, posed.mean_error_mm, posed.max_error_mm
    )


def _held_at(options: IkOptions, actuation: Array) -> IkOptions:
    return replace(options, actuation_min=actuation, actuation_max=actuation, initial_actuation=actuation)


def _figures(some: list[Reached]) -> dict[str, float]:
    return {
        "mean_mm": round(float(np.mean([one.mean for one in some])), 3),
        "max_mm": round(float(np.mean([one.max for one in some])), 2),
        "predicted_mm": round(float(np.mean([one.history[-1] for one in some])), 3),
        "iterations": round(float(np.mean([len(one.history) - 1 for one in some])), 1),
    }


def _draw(robot: Robot, targets: list[TorsoTarget], found: dict[tuple[str, str], Reached]) -> Figure:
    """Draw a column of each torso: target, and the true mannequin as each way leaves it; errors, iterations."""
    figure = Figure(figsize=(2.0 * len(targets) + 2.0, 15.0), dpi=80, layout="constrained")
    parts = figure.add_gridspec(2, 1, height_ratios=[3.6, 1.0])
    upper, lower = figure.add_subfigure(parts[0]), figure.add_subfigure(parts[1])
    rows = 1 + len(_COLOURS)
    for column, target in enumerate(targets):
        assert target.shape.faces is not None
        for row, way in enumerate((None, *_COLOURS)):
            axes = upper.add_subplot(rows, len(targets), row * len(targets) + column + 1, projection="3d")
            if way is None:
                points, faces = target.shape.points * MM_PER_M, target.shape.faces
                colours = np.tile(SKIN, (len(faces), 1))
                title = target.name if target.fits else f"{target.name}, another size"
            else:
                one = found[way, target.name]
                points, faces = one.points, robot.patches.triangles(len(one.points))
                colours, title = error_colours(faces, one.distances, one.covered), f"{way}:\n{float(one.mean):.2f} mm"
            draw_panel(axes, points, faces, colours, FRONT, title, lit=way is None)
    label = "distance of the true mannequin from the target (mm); grey: no counterpart on it"
    scale = ScalarMappable(Normalize(0.0, SCALE_MM), ERROR_COLOURS)
    upper.colorbar(scale, ax=upper.axes, label=label, location="bottom", shrink=0.5, aspect=40, pad=0.01, extend="max")
    bars, curves = lower.subplots(1, 2)
    _draw_bars(bars, targets, found)
    _draw_curves(curves, targets, found)
    return figure


def _draw_bars(axes: Axes, targets: list[TorsoTarget], found: dict[tuple[str, str], Reached]) -> None:
    width = 0.8 / len(_COLOURS)
    for place, (way, colour) in enumerate(_COLOURS.items()):
        at = np.arange(len(targets)) + (place - 0.5 * (len(_COLOURS) - 1)) * width
        axes.bar(at, [float(found[way, one.name].mean) for one in targets], width, color=colour, label=way)
    axes.set_xticks(np.arange(len(targets)), [one.name for one in targets])
    axes.set(ylabel="mean distance (mm)", title="The true mannequin")
    axes.legend(framealpha=0.9, edgecolor="none")


def _draw_curves(axes: Axes, targets: list[TorsoTarget], found: dict[tuple[str, str], Reached]) -> None:
    for number, target in enumerate(one for one in targets if one.fits):
        for way in _LEARNED:
            history = found[way, target.name].history
            label = way if number == 0 else None
            axes.plot(np.arange(len(history)), history, color=_COLOURS[way], linewidth=1.2, label=label)
    axes.set(xlabel="iteration", ylabel="mean distance as predicted (mm)", title="On the way, bodies of its size")
    axes.grid(alpha=0.25)
    axes.legend(framealpha=0.9, edgecolor="none")
