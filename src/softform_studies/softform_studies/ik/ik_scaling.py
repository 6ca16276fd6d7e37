"""Section `scaling` of `bench ik`: the time of an iteration against surface points, kernels and degrees of freedom.

Networks of each size with random weights about the identity: what an iteration costs does not depend on their values.
An iteration is one evaluation (prediction and closest points) and one step (Jacobian, quadratic model, bounds).
"""

from collections.abc import Iterable

import numpy as np

from softform_core.arrays import Array
from softform_core.forward.pipeline import ForwardPipeline
from softform_core.forward.rbf_warp import SimToReal
from softform_core.inverse.closest_points import closest_points_on
from softform_core.inverse.ik_options import IkOptions
from softform_core.inverse.ik_problem import Problem
from softform_core.networks.mlp_weights import MlpWeights
from softform_core.shapes.shape import Shape
from softform_core.surface.patch_set import SHEET
from softform_core.threads import one_thread
from softform_core.units import MM_PER_M
from softform_studies.ik.ik_solver import CLOUD_POINTS, iteration_ms

POINTS = (200, 500, 1000, 2000, 5000, 10_000, 20_000)
KERNELS = (34, 64, 100, 200, 400)
DEGREES_OF_FREEDOM = (6, 9, 12, 15)

_USUAL = {"points": 1000, "kernels": 100, "degrees_of_freedom": 9}
_GRID = 30
_HIDDEN = 128
_ENSEMBLE = 256
_ACTUATION_MAX = 5000.0
_SIDE_MM = 320.0
_LIFT_MM = 20.0
"""Height by which the chambers lift the made-up surface, mm."""

_REPEATS = 20


def scaling() -> dict[str, object]:
    """Milliseconds of an iteration against points, kernels and degrees of freedom, with the fitted exponents."""
    with one_thread():
        return {
            "usual": _USUAL,
            "target_points": CLOUD_POINTS,
            "points": _series("points", POINTS),
            "kernels": _series("kernels", KERNELS),
            "degrees_of_freedom": _series("degrees_of_freedom", DEGREES_OF_FREEDOM),
        }


def _series(name: str, sizes: Iterable[int]) -> dict[str, object]:
    times = {size: fastest_iteration_ms(**{**_USUAL, name: size}) for size in sizes}
    exponent = np.polyfit(np.log(list(times)), np.log(list(times.values())), 1)[0]
    return {"ms_per_iteration": {str(size): ms for size, ms in times.items()}, "exponent": float(exponent)}


def fastest_iteration_ms(points: int, kernels: int, degrees_of_freedom: int) -> float:
    """Return the least time of some iterations near the target: other work on the machine only adds to it."""
    pipeline = random_pipeline(points, kernels, degrees_of_freedom)
    low, high = np.zeros(degrees_of_freedom), np.full(degrees_of_freedom, _ACTUATION_MAX)
    dense = pipeline.at(SHEET.samples(10_000))
    mesh = Shape(dense.points(0.5 * high) / MM_PER_M, None, SHEET.triangles(10_000))
    search = closest_points_on(Shape(mesh.sample(CLOUD_POINTS).points))
    problem = Problem(pipeline, search, IkOptions(low, high))
    return min(iteration_ms(problem, 0.5 * high) for _ in range(_REPEATS))


def random_pipeline(points: int, kernels: int, degrees_of_freedom: int) -> ForwardPipeline:
    """Return a pipeline of the shipped networks' widths, with random weights, over a sheet of the membrane's size."""
    rng = np.random.default_rng(points + kernels + degrees_of_freedom)
    line = np.linspace(-0.5 * _SIDE_MM, 0.5 * _SIDE_MM, _GRID)
    flat = np.stack([*np.meshgrid(line, line, indexing="ij"), np.zeros((_GRID, _GRID))], axis=-1).ravel()
    forward_kinematics = _random_perceptron(
        (degrees_of_freedom, _HIDDEN, _HIDDEN, flat.size),
        rng,
        "relu",
        np.zeros(degrees_of_freedom),
        np.full(degrees_of_freedom, _ACTUATION_MAX),
        flat,
        np.tile([0.05 * _LIFT_MM, 0.05 * _LIFT_MM, _LIFT_MM], _GRID * _GRID),
    )
    gamma, scale = np.zeros((kernels + 4, 3)), np.full((kernels + 4, 3), 0.1)
    gamma[1:4], scale[1:4] = np.eye(3), 0.001
    coefficients = _random_perceptron(
        (flat.size, _ENSEMBLE, _ENSEMBLE, gamma.size),
        rng,
        "tanh",
        flat,
        np.full(flat.size, _SIDE_MM),
        gamma.ravel(),
        scale.ravel(),
    )
    return ForwardPipeline(
        forward_kinematics, SHEET.samples(points), SimToReal(rng.uniform(size=(kernels, 2)), coefficients)
    )


def _random_perceptron(
    sizes: tuple[int, ...],
    rng: np.random.Generator,
    activation: str,
    input_offset: Array,
    input_scale: Array,
    output_offset: Array,
    output_scale: Array,
) -> MlpWeights:
    pairs = list(zip(sizes[:-1], sizes[1:], strict=True))
    return MlpWeights(
        [rng.normal(size=(outputs, inputs)) / np.sqrt(inputs) for inputs, outputs in pairs],
        [0.1 * rng.normal(size=outputs) for _, outputs in pairs],
        activation,
        input_offset,
        input_scale,
        output_offset,
        output_scale,
    )
