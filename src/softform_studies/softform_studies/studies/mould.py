"""Fig. 19: the membrane as a mould under a tool path that is planned on the target, in reality.

The tool lays lines at a constant spacing over the target, there and back, with its axis along the target's normal. The
paper prints no figure of this experiment; layer, spacing and measures are ours. There is no arm.
"""

from dataclasses import dataclass

import numpy as np
import open3d
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from numpy.typing import NDArray
from open3d.core import Tensor

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.evaluation.drawing import MEASURED_COLOUR, PREDICTED_COLOUR, REST_COLOUR
from softform_core.forward.live_pipeline import LivePipeline
from softform_core.inverse.inverse import solve_inverse_kinematics
from softform_core.paths import models_of
from softform_core.shapes.dem import dem_target
from softform_core.shapes.random import random_target
from softform_core.shapes.shape import Shape
from softform_core.simulation.simulated_body import equilibrium_points
from softform_core.units import MM_PER_M
from softform_rig.best_fit import find_best_fit
from softform_rig.live_body import LiveBody
from softform_rig.reality import true_values
from softform_studies.ik.ik_solver import from_rest
from softform_studies.studies.catalogue import BEFORE, OURS, Outcome, Setting

LAYER = 0.002
"""Height of a printed layer, m."""

SPACING = 0.004
"""Distance of the lines seen from above, m; the outermost ones are as far from the frame."""

BEST = "best fit"
"""The mould closest to the target that the true membrane can be: what the gap would be with a perfect model."""

_STEP = 0.001
_COLOURS = {BEFORE: MEASURED_COLOUR, OURS: PREDICTED_COLOUR, BEST: REST_COLOUR}


@dataclass(frozen=True)
class ToolPath:
    """Places of the nozzle, (n, 3) m, and the tool's axis at each, (n, 3) unit vectors."""

    places: Array
    axes: Array


class Sheet:
    """A triangle mesh, (V, 3) m and (F, 3), that is looked at from above and from near, with smooth normals."""

    def __init__(self, vertices: Array, faces: NDArray[np.integer]) -> None:
        self._scene = open3d.t.geometry.RaycastingScene()
        self._scene.add_triangles(
            Tensor.from_numpy(vertices.astype(np.float32)), Tensor.from_numpy(faces.astype(np.uint32))
        )
        normals = Shape.from_mesh(vertices, faces).normals
        assert normals is not None
        self._vertices, self._faces, self._normals = vertices, faces, normals

    def below(self, places: Array) -> ToolPath:
        """Return the sheet's points and normals under places (n, 2) m, but for those beside it."""
        top = np.full(len(places), self._vertices[:, 2].max() + 1.0)
        down = np.tile([0.0, 0.0, -1.0], (len(places), 1))
        rays = np.concatenate([places, top[:, None], down], axis=1).astype(np.float32)
        seen = self._scene.cast_rays(Tensor.from_numpy(rays))
        met = np.isfinite(seen["t_hit"].numpy())
        return self._at(seen["primitive_ids"].numpy()[met], seen["primitive_uvs"].numpy()[met])

    def nearest(self, points: Array) -> ToolPath:
        """Return the sheet's nearest points and its normals there, of points (n, 3) m."""
        seen = self._scene.compute_closest_points(Tensor.from_numpy(points.astype(np.float32)))
        return self._at(seen["primitive_ids"].numpy(), seen["primitive_uvs"].numpy())

    def _at(self, triangles: NDArray[np.integer], uv: Array) -> ToolPath:
        shares = np.concatenate([1.0 - uv.sum(axis=1, keepdims=True), uv], axis=1)
        corners = self._faces[triangles]
        places, normals = (np.einsum("nc,ncx->nx", shares, each[corners]) for each in (self._vertices, self._normals))
        return ToolPath(places, normals / np.linalg.norm(normals, axis=1, keepdims=True))


def raster(target: Shape, spacing: float = SPACING) -> ToolPath:
    """Return parallel lines over a target, there and back."""
    assert target.faces is not None
    low, high = target.points.min(axis=0)[:2] + spacing, target.points.max(axis=0)[:2] - spacing
    x, y = np.arange(low[0], high[0], _STEP), np.arange(low[1], high[1], spacing)
    lines = [np.stack([x[:: 1 - 2 * (line % 2)], np.full(len(x), at)], axis=1) for line, at in enumerate(y)]
    return Sheet(target.points, target.faces).below(np.concatenate(lines))


def look_at(path: ToolPath, mould: Sheet) -> tuple[Array, Array]:
    """Judge how a tool path planned on a target meets the true mould.

    Returns:
        Gaps (n,) m, the distance of each place from the mould, negative within it; and the misalignment of two layers
        (n,) m: the second one, a layer higher along the tool's axis, stands so far beside the place above the first
        along the mould's normal.
    """
    met = mould.nearest(path.places)
    away = path.places - met.places
    gaps = np.copysign(np.linalg.norm(away, axis=1), np.einsum("nx,nx->n", away, met.axes))
    return gaps, LAYER * np.linalg.norm(np.cross(path.axes, met.axes), axis=1)


def mould(setting: Setting) -> Outcome:
    """Deform the true membrane into two targets by both models, and follow the tool path over it.

    Raises:
        SoftformError: If the robot is no membrane, has no model of this reality, or the reality no shape.
    """
    robot, reality = setting.robot, setting.reality
    if robot.body.kind != "membrane":
        raise SoftformError(f"Robot '{robot.name}' is no membrane.", "Only a sheet that lies flat is a mould.")
    models = LivePipeline(robot, sim_to_real=str(models_of(robot.name) / f"rig_{reality.name}"))
    targets = {"landscape": dem_target(robot), "random shape": random_target(robot, setting.seed)}
    entries, looks = [], {}
    for name, target in targets.items():
        path = raster(target, setting.scale.pick(SPACING, 10.0 * SPACING))
        for series, sheet in _moulds(setting, models, target).items():
            gaps, misaligned = looks[name, series] = look_at(path, sheet)
            entries.append({"series": series, "x": name, **_figures(gaps, misaligned)})
        looks[name, "path"] = path.places, path.axes
    return Outcome(entries, _draw(list(targets), looks), f"{SPACING * MM_PER_M:g} mm between lines")


def _moulds(setting: Setting, models: LivePipeline, target: Shape) -> dict[str, Sheet]:
    """Return the true membrane under the actuation that each way finds."""
    robot, reality = setting.robot, setting.reality
    found = {}
    for series, model in ((BEFORE, models.simulated), (OURS, models.current)):
        live = LiveBody(robot, reality)
        actuation = solve_inverse_kinematics(model, target, from_rest(robot)).actuation
        found[series] = Sheet(live.commanded_shape(actuation), live.faces)
    # The search leaves the body's memory out, and so does its shape.
    best = find_best_fit(robot, reality, target, setting.scale.pick(2, 1), setting.seed).actuation
    body = robot.body.real_simulator(reality.body)
    shapes = equilibrium_points(body, true_values(reality, robot, robot.actuators_of(best))[None])
    return {**found, BEST: Sheet(shapes[0], body.faces)}


def _figures(gaps: Array, misaligned: Array) -> dict[str, float]:
    return {
        "mean_gap_mm": round(float(np.abs(gaps).mean()) * MM_PER_M, 3),
        "max_gap_mm": round(float(np.abs(gaps).max()) * MM_PER_M, 2),
        "beyond_half_a_layer": round(float((np.abs(gaps) > 0.5 * LAYER).mean()), 4),
        "mean_misalignment_mm": round(float(misaligned.mean()) * MM_PER_M, 4),
        "max_misalignment_mm": round(float(misaligned.max()) * MM_PER_M, 3),
    }


def _draw(targets: list[str], looks: dict[tuple[str, str], tuple[Array, Array]]) -> Figure:
    """Draw rows of targets: the path with its gap as colour, by each way, and the share of the path within a gap."""
    figure = Figure(figsize=(17.0, 8.6), dpi=80, layout="constrained")
    panels = figure.subplots(len(targets), len(_COLOURS) + 1)
    scale = Normalize(-1.5 * LAYER * MM_PER_M, 1.5 * LAYER * MM_PER_M)
    for row, target in zip(panels, targets, strict=True):
        places = looks[target, "path"][0] * MM_PER_M
        for axes, (series, colour) in zip(row[:-1], _COLOURS.items(), strict=True):
            gaps = looks[target, series][0] * MM_PER_M
            axes.scatter(places[:, 0], places[:, 1], c=gaps, s=1.5, cmap="coolwarm", norm=scale, linewidths=0.0)
            axes.set(aspect="equal", xlabel="x (mm)", title=f"{target}, {series}: {np.abs(gaps).mean():.2f} mm")
            row[-1].plot(np.sort(np.abs(gaps)), np.linspace(0.0, 100.0, len(gaps)), color=colour, label=series)
        row[0].set(ylabel="y (mm)")
        row[-1].axvline(0.5 * LAYER * MM_PER_M, color="black", linestyle=":", label="half a layer")
        row[-1].set(xlim=(0.0, scale.vmax), ylim=(0.0, 100.0), xlabel="gap, without its sign (mm)")
        row[-1].set(ylabel="share of the path within it (%)")
        row[-1].grid(alpha=0.25)
    panels[0, -1].legend(loc="lower right", framealpha=0.9, edgecolor="none")
    figure.colorbar(
        ScalarMappable(scale, "coolwarm"),
        ax=panels[:, :-1],
        label="nozzle above the true mould (mm); below 0: within it",
        shrink=0.6,
        extend="both",
    )
    return figure
