"""Section `compiled` of `bench ik`: compiled code beside a library, in whole solves, in turns on the same targets.

Compiled code stays where it wins by 1.3 times from end to end at equal exactness, the target's preparation included.
Matrix products (numpy, BLAS) are all that prediction and Jacobian need; the searches for closest points are compiled:
on clouds against scipy's k-d tree (and pykdtree's where it is installed), on meshes against Open3D's RaycastingScene,
which computes in single precision; the comparison at equal exactness takes the nearest triangle in double precision.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec

import numpy as np

from softform_core.forward.robot_pipeline import SURFACE_POINTS
from softform_core.inverse.closest_points import ClosestPoints
from softform_core.inverse.ik_result import IkResult
from softform_core.inverse.inverse import search_of, solve_prepared
from softform_core.robots import load_robot
from softform_core.shapes.target import TargetShape
from softform_core.threads import one_thread
from softform_core.units import MM_PER_M
from softform_studies.ik.ik_prediction import shipped_pipeline
from softform_studies.ik.ik_solver import from_rest
from softform_studies.ik.ik_targets import reachable_targets
from softform_studies.ik.library_search import library_search

TARGETS = 20
_REPEATS = 5
_MESH_POINTS = 10_000

Solve = Callable[[TargetShape], IkResult]


def compiled(points: int = SURFACE_POINTS) -> dict[str, object]:
    """Compiled code beside scipy and Open3D, in whole solves."""
    robot = load_robot("membrane")
    pipeline, options = shipped_pipeline(robot, points), from_rest(robot)

    def solve_with(search: Callable[[TargetShape], ClosestPoints]) -> Solve:
        return lambda target: solve_prepared(pipeline, search(target), options)

    targets = list(reachable_targets(robot, pipeline, TARGETS))
    patches = pipeline.patches
    dense, faces = pipeline.at(patches.samples(_MESH_POINTS)), patches.triangles(_MESH_POINTS)
    meshes = [TargetShape(dense.points(target.actuation) / MM_PER_M, None, faces) for target in targets]
    ours, clouds = solve_with(search_of), [target.cloud for target in targets]
    figures: dict[str, object] = {"cloud_search_and_scipy": _compared(ours, solve_with(library_search), clouds)}
    if find_spec("pykdtree") is not None:
        tree = import_module("pykdtree.kdtree").KDTree
        figures["cloud_search_and_pykdtree"] = _compared(ours, solve_with(partial(library_search, tree=tree)), clouds)
    if find_spec("open3d") is not None:
        figures["mesh_search_and_open3d"] = _compared(ours, solve_with(library_search), meshes)
        in_single = solve_with(partial(library_search, exact=False))
        figures["mesh_search_and_open3d_in_single_precision"] = _compared(ours, in_single, meshes)
    return figures


def _compared(ours: Solve, library: Solve, targets: Sequence[TargetShape]) -> dict[str, float]:
    """Medians over the targets of the least processor time, and of the mean error."""
    with one_thread():
        ours(targets[0])
        pairs = np.array([_pair(ours, library, target) for target in targets])
    medians = np.median(pairs, axis=0)
    return {
        "ours_ms_per_solve_p50": float(medians[0, 0]),
        "ours_mean_error_mm_p50": float(medians[0, 1]),
        "library_ms_per_solve_p50": float(medians[1, 0]),
        "library_mean_error_mm_p50": float(medians[1, 1]),
        "ratio": float(np.median(pairs[:, 1, 0] / pairs[:, 0, 0])),
    }


def _pair(ours: Solve, library: Solve, target: TargetShape) -> list[tuple[float, float]]:
    """Least processor time, ms, and mean error, mm, of ours and of the library, in turns."""
    times: dict[Solve, list[float]] = {ours: [], library: []}
    errors = {}
    for _ in range(_REPEATS):
        for solve, spent in times.items():
            begun = time.process_time()
            errors[solve] = solve(target).mean_error_mm
            spent.append(1e3 * (time.process_time() - begun))
    return [(min(times[solve]), errors[solve]) for solve in (ours, library)]
