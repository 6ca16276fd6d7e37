"""Floors of the figures of `softform bench sim2real`, which no learning can get below.

- spline: a B-spline surface fitted to the true shape itself; the error of the representation (paper 000, Eq. 1).
- warp: the RBF warp (Eq. 2) of the simulated shape that fits this one true shape best; the error of the kernels.
- forward kinematics: N_fk against the simulator.
- memory: what no model without history can know, the spread of true shapes at one commanded actuation.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.forward.rbf_warp import SimToReal
from softform_core.robots import Robot
from softform_core.shapes.shape import Shape
from softform_core.simulation.newton import find_equilibria
from softform_core.simulation.simulated_body import equilibrium_points, rest_points
from softform_core.surface.fit import SurfaceFitter
from softform_core.surface.patch_set import PatchSet
from softform_core.units import MM_PER_M
from softform_rig.gap import random_actuations
from softform_rig.live_body import HELD_S
from softform_rig.reality import Reality, SettledDevices, memory_of
from softform_studies.sim_to_real.judge import Errors, Judge, search_tree
from softform_studies.sim_to_real.warp_fit import warped_onto

_SAMPLES_PER_CONTROL_POINT = 3
_ITERATIONS = 8
_TANGENTIAL = 0.03
"""Weight of tangential distances. Less lowers the mean of the warp floor a little and lets points slide past the rim,
which raises its maximum."""


def patch_faces(robot: Robot, rest: Array, faces: NDArray[np.integer]) -> NDArray[np.integer]:
    """Return the faces (F, 3) of the resting body (V, 3) m that its one patch covers: an arm has an end, too."""
    return faces[robot.body.faces_of(robot.surfaces[0].patch, rest, faces)]


def fitted_surface(rest: Array, shapes: Array, faces: NDArray[np.integer], patches: PatchSet, uv: Array) -> Array:
    """Return points of B-spline surfaces fitted to meshes that share their triangles; the spline floor, (n, P, 3) mm.

    Each triangle gives more points than its corners, so that a mesh coarser than the control grid can be fitted.

    Args:
        rest: (V, 3) the mesh at rest, whose flattening gives the parameters.
        shapes: (n, V, 3) mm.
        faces: (F, 3).
        patches: Patch set of the surface, of one patch.
        uv: (P, 2) parameters to evaluate.

    Raises:
        SoftformError: If the rest mesh cannot be flattened, or does not determine the control points.
    """
    patch = patches.only
    cells = math.sqrt(len(faces) / 2.0)
    barycentric = _barycentric(math.ceil(_SAMPLES_PER_CONTROL_POINT * max(patch.rows, patch.cols) / cells))
    mesh = patch.parametrised(rest, faces)
    inner_uv = (barycentric @ mesh.corners).reshape(-1, 2)
    if patch.periodic:
        inner_uv[:, 0] %= 1.0
    inner = (barycentric @ shapes[:, mesh.kept][:, mesh.faces]).reshape(len(shapes), -1, 3)
    fitter = SurfaceFitter(np.clip(np.vstack([mesh.uv, inner_uv]), 0.0, 1.0), *patch)
    return patch.evaluate(fitter.fit(np.concatenate([shapes[:, mesh.kept], inner], axis=1)), uv)


def _barycentric(parts: int) -> Array:
    """Return barycentric coordinates of a division of a triangle's sides, (b, 3), without the corners."""
    steps = np.arange(parts + 1)
    first, second = np.meshgrid(steps, steps, indexing="ij")
    third = parts - first - second
    inside = (third >= 0) & (np.maximum.reduce([first, second, third]) < parts)
    return np.stack([first[inside], second[inside], third[inside]], axis=1) / parts


@dataclass(frozen=True)
class Floors:
    """Errors that remain if all but one step were perfect.

    Attributes:
        figures: Errors and cut of the gap, of `spline` (fit of the true surfaces), `forward_kinematics` (N_fk against
            the simulator) and `warp` (the best warp of each shape by itself).
        gap: `mean_mm` and `max_mm` (mean over the shapes of each one's largest) between simulator and reality: what
            there is to learn. In a reality without a gap, cuts say nothing.
    """

    figures: dict[str, dict[str, float]]
    gap: dict[str, float]


def floors(robot: Robot, reality: Reality, judge: Judge, kernels: SimToReal) -> Floors:
    """Measure the floors at the held-out actuations.

    Raises:
        SoftformError: If the simulator has no shape at a held-out actuation.
    """
    held_out = judge.held_out
    rest = rest_points(robot.body.real_simulator(reality.body))
    faces = patch_faces(robot, rest, held_out.faces)
    spline = fitted_surface(rest, MM_PER_M * held_out.vertices, faces, judge.patches, judge.uv)
    predicted = judge.predicted(None)
    centers = judge.pipeline(kernels).kernel_centers(held_out.actuation)
    shapes = zip(predicted, centers, judge.truths, strict=True)
    how = kernels.width, _ITERATIONS, _TANGENTIAL
    warped = np.array([warped_onto(points, center, truth, *how) for points, center, truth in shapes])

    simulator = robot.body.simulator()
    simulated = equilibrium_points(simulator, robot.actuators_of(held_out.actuation))
    pairs = zip(simulated, predicted, strict=True)
    of_network = Errors(np.array([search_tree(shape, simulator.faces).query(one).distances for shape, one in pairs]))
    gap = judge.errors(MM_PER_M * simulated)
    return Floors(
        {
            "spline": judge.figures(judge.errors(spline)),
            "forward_kinematics": judge.figures(of_network),
            "warp": judge.figures(judge.errors(warped)),
        },
        {"mean_mm": round(gap.mean_mm, 4), "max_mm": round(gap.max_mm, 3)},
    )


HISTORIES = 6
_PAST = 4
"""Random actuations before the judged one, each held as long; what was before them is forgotten."""


def memory_floor(robot: Robot, reality: Reality, actuation: Array, seed: int) -> Errors:
    """Return errors of a model that knows the mean of the true shapes at each actuation over its histories.

    A point's error is the share of its distance from the mean shape that is along the mean shape's normal, times
    sqrt(h / (h - 1)), as the mean is of these h shapes themselves.

    Args:
        robot: The robot.
        reality: Reality of the robot.
        actuation: (n, m) commanded.
        seed: Seed of the histories, which are random actuations in the working range.

    Returns:
        Errors (n * `HISTORIES`, V) mm; zeros of a reality without memory.

    Raises:
        SoftformError: If the reality has no shape at an actuation.
    """
    body = robot.body.real_simulator(reality.body)
    effective = np.array([_effective(robot, reality, each, seed + place) for place, each in enumerate(actuation)])
    if not np.ptp(effective, axis=1).any():
        return Errors(np.zeros((len(actuation) * HISTORIES, 1)))
    distances = []
    for of_one in effective:
        start = find_equilibria(body, of_one[:1]).unknowns
        found = find_equilibria(body, of_one, np.repeat(start, HISTORIES, axis=0))
        if reason := next(filter(None, found.failures), ""):
            raise SoftformError(f"Reality '{reality.name}' has no shape: {reason}", "Soften its differences.")
        shapes = MM_PER_M * body.points(found.unknowns)
        mean = shapes.mean(axis=0)
        normals = Shape.from_mesh(mean, body.faces).normals
        assert normals is not None
        distances.append(np.abs(np.einsum("hvx,vx->hv", shapes - mean, normals)))
    return Errors(math.sqrt(HISTORIES / (HISTORIES - 1)) * np.concatenate(distances))


def _effective(robot: Robot, reality: Reality, actuation: Array, seed: int) -> Array:
    """Return effective values (`HISTORIES`, k) at an actuation (m,), after different ones."""
    effective = []
    for past in random_actuations(robot, HISTORIES * _PAST, seed).reshape(HISTORIES, _PAST, -1):
        devices, memory = SettledDevices(reality, robot), memory_of(reality, robot)
        for commanded in (*past, actuation):
            last = memory.feel(devices.settle(robot.actuators_of(commanded), HELD_S), HELD_S)
        effective.append(last)
    return np.array(effective)
