"""Seconds a simulated shape: our Newton method, and a first-order method on the same membrane, in one run.

The reference is L-BFGS (scipy) on the same total potential, with the same kernels and the same start: what a solver
without second derivatives costs. It stops at a residual a thousand times coarser than Newton's, or at its limit of
iterations. The paper's own figure is quoted beside both; its simulator and machine are not ours. And what the compiled
assembly of gradient and Hessian is worth: the same sums by numpy. Beside it the paper's other bodies that are quick to
solve.
"""

import time
from typing import Any

import numpy as np
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from softform_core.arrays import Array
from softform_core.robots import Robot, load_robot
from softform_core.simulation.newton import Equilibria, find_equilibria
from softform_core.simulation.simulated_body import rest_points
from softform_core.units import MM_PER_M

PAPER_SECONDS = {"membrane": 110.0, "compressible": 5.0, "mannequin": 150.0}
"""Paper 000, Table II."""
_REFERENCE_SHAPES = 3
_REFERENCE_ITERATIONS = 5000
_REFERENCE_RESIDUAL = 1e-5  # of the load; Newton's is 1e-8
_ASSEMBLIES = 10
_ONLY_BALANCE = {"ftol": 0.0, "gtol": 0.0}  # ends it


def run(shapes: int = 20, seed: int = 0) -> dict[str, object]:
    """Solve random actuations of the robot `membrane`, on one core, and of the other robots.

    Of the random actuations for our solver the reference solves the first three.

    Returns:
        JSON-ready figures: ours, the reference's, their ratio, the paper's. `core_seconds` are processor time, which
        other work on the machine does not lengthen.
    """
    robot = load_robot("membrane")
    body = robot.body.simulator()
    commands = random_commands(robot, shapes, seed)
    compared = commands[:_REFERENCE_SHAPES]
    with threadpool_limits(1):
        ours, core_seconds, wall = solved(body, commands)
        core_begin = time.process_time()
        reference = [_first_order(body, values) for values in compared]
        reference_seconds = (time.process_time() - core_begin) / len(compared)
        compiled, by_numpy = _assembly_seconds(body, robot.actuators_of(robot.actuation_max))
        others = {name: other_robot(name, shapes, seed) for name in PAPER_SECONDS if name != robot.name}
    found = [one for one in ours if one.found.all()]
    rises = [body.points(one.unknowns)[0, :, 2].max() for one in found]
    gaps = [
        np.linalg.norm(theirs - body.points(one.unknowns)[0], axis=1).mean()
        for (theirs, _, _), one in zip(reference, ours, strict=False)
        if one.found.all()
    ]
    iterations = float(np.mean([one.iterations[0] for one in found]))
    return {
        "robot": robot.name,
        "vertices": len(rest_points(body)),
        "shapes": shapes,
        "converged_share": len(found) / shapes,
        "core_seconds_per_shape": float(np.mean(core_seconds)),
        "core_seconds_per_shape_max": float(np.max(core_seconds)),
        "wall_seconds_per_shape": wall / shapes,
        "iterations_mean": iterations,
        "rise_mm_mean": MM_PER_M * float(np.mean(rises)),
        "reference": {
            "method": "L-BFGS on the same potential, kernels and start",
            "shapes": len(compared),
            "core_seconds_per_shape": reference_seconds,
            "iterations_mean": float(np.mean([steps for _, steps, _ in reference])),
            "residual_over_load_max": max(residual for _, _, residual in reference),
            "mean_distance_from_ours_mm": MM_PER_M * float(np.mean(gaps)),
        },
        "reference_over_ours": reference_seconds / float(np.mean(core_seconds[: len(compared)])),
        "assembly": {
            "compiled_core_seconds": compiled,
            "numpy_core_seconds": by_numpy,
            "numpy_over_compiled": by_numpy / compiled,
            "shape_by_numpy_over_ours": 1.0 + (iterations + 1.0) * (by_numpy - compiled) / float(np.mean(core_seconds)),
        },
        "paper_seconds_per_shape": PAPER_SECONDS[robot.name],
        "others": others,
    }


def random_commands(robot: Robot, shapes: int, seed: int) -> Array:
    """Actuators (n, k) of random actuations in the working range."""
    span = robot.actuation_max - robot.actuation_min
    relative = np.random.default_rng(seed).random((shapes, len(span)))
    return robot.actuators_of(robot.actuation_min + relative * span)


def solved(body: Any, commands: Array) -> tuple[list[Equilibria], list[float], float]:
    """The shape under each of the commands by itself, its processor time, and the time that all took, s."""
    find_equilibria(body, 0.01 * commands[:1])  # compiles the kernels
    core_seconds, found, started = [], [], time.perf_counter()
    for values in commands:
        begin = time.process_time()
        found.append(find_equilibria(body, values[None]))
        core_seconds.append(time.process_time() - begin)
    return found, core_seconds, time.perf_counter() - started


def other_robot(name: str, shapes: int, seed: int) -> dict[str, float]:
    """Figures of one of the robots beside the membrane, at so many random actuations."""
    robot = load_robot(name)
    found, core_seconds, _ = solved(robot.body.simulator(), random_commands(robot, shapes, seed))
    return {
        "shapes": shapes,
        "converged_share": float(np.mean([one.found.all() for one in found])),
        "core_seconds_per_shape": float(np.mean(core_seconds)),
        "core_seconds_per_shape_max": float(np.max(core_seconds)),
        "iterations_mean": float(np.mean([one.iterations[0] for one in found])),
        "paper_seconds_per_shape": PAPER_SECONDS[name],
    }


def _assembly_seconds(body: Any, values: Array) -> list[float]:
    """Least processor time of gradient and Hessian of the fully inflated sheet, compiled and by numpy, in turns."""
    unknowns = find_equilibria(body, values[None]).unknowns
    vertices = body.points(unknowns)[0]
    ways = (
        lambda: body.derivatives(unknowns, values[None]),
        lambda: taut_gradient_and_hessian(body.membrane, vertices, values),
    )
    spent = np.empty((_ASSEMBLIES, len(ways)))
    for turn in spent:
        for index, way in enumerate(ways):
            begin = time.process_time()
            way()
            turn[index] = time.process_time() - begin
    return [float(one) for one in spent.min(axis=0)]


def _first_order(body: Any, commands: Array) -> tuple[Array, int, float]:
    """Vertices (V, 3) m, iterations, and residual over the load."""
    values = commands[None]
    load = float(np.linalg.norm(body.gradient(body.rest[None], values)))

    def gradient(unknowns: Array) -> Array:
        return np.asarray(body.gradient(unknowns[None], values)[0])

    def stop_when_balanced(unknowns: Array) -> None:
        if float(np.linalg.norm(gradient(unknowns))) <= _REFERENCE_RESIDUAL * load:
            raise StopIteration

    result = minimize(
        lambda unknowns: float(body.energy(unknowns[None], values)[0]),
        body.start(values)[0],
        jac=gradient,
        method="L-BFGS-B",
        callback=stop_when_balanced,
        options={"maxiter": _REFERENCE_ITERATIONS, "maxfun": 2 * _REFERENCE_ITERATIONS, "maxcor": 20, **_ONLY_BALANCE},
    )
    residual = float(np.linalg.norm(gradient(result.x))) / load
    return body.points(result.x[None])[0], int(result.nit), residual


def taut_gradient_and_hessian(membrane: Any, vertices: Array, pressures: Array) -> tuple[Array, Array]:
    """Gradient (V, 3) N of the elements, and their part of the sparse Hessian's values (m,) N/m.

    The sums of `bodies.membrane.energy.assemble` for a sheet of Yeoh's law that is taut everywhere.

    Args:
        membrane: The model of a body of kind `membrane`.
        vertices: (V, 3) m.
        pressures: (k,) Pa.
    """
    places, b = vertices[membrane.elements], membrane.gradients  # (E, n, 3), (E, q, n, 2)
    f = np.einsum("eak,eqai->eqki", places, b)
    c = np.einsum("eqki,eqkj->eqij", f, f)
    phi = 1.0 / np.linalg.det(c)
    inverse_c = np.linalg.inv(c)
    c1, c2, c3 = membrane.coefficients
    j = np.trace(c, axis1=2, axis2=3) + phi - 3.0
    elastic = membrane.areas * membrane.thickness[:, None]
    slope, curvature = elastic * (c1 + j * (2.0 * c2 + 3.0 * j * c3)), elastic * (2.0 * c2 + 6.0 * j * c3)
    raised = np.einsum("eqij,eqaj->eqai", inverse_c, b)
    inverse = np.einsum("eqki,eqai->eqak", f, raised)
    stress = 2.0 * (np.einsum("eqki,eqai->eqak", f, b) - phi[:, :, None, None] * inverse)
    normal = np.cross(f[..., 0], f[..., 1]) * np.sqrt(phi)[:, :, None]
    follower = membrane.areas * membrane.pressure_of_element(pressures)[:, None]
    height = np.einsum("aq,ea->eq", membrane.shapes, places[:, :, 2])
    projected = f[:, :, 0, 0] * f[:, :, 1, 1] - f[:, :, 0, 1] * f[:, :, 1, 0]
    curtain = np.zeros_like(stress)
    curtain[..., 0] = b[..., 0] * f[:, :, 1, 1, None] - b[..., 1] * f[:, :, 1, 0, None]
    curtain[..., 1] = f[:, :, 0, 0, None] * b[..., 1] - f[:, :, 0, 1, None] * b[..., 0]
    volume = height[:, :, None, None] * curtain
    volume[..., 2] = membrane.shapes.T * projected[:, :, None]
    forces = np.einsum("eq,eqak->eak", slope, stress) - np.einsum("eq,eqak->eak", follower, volume)

    unit = np.eye(3)
    hessian = np.einsum("eq,eqak,eqbm->eakbm", curvature, stress, stress, optimize=True)
    hessian += np.einsum("eq,eqak,eqbm->eakbm", 4.0 * phi * slope, inverse, inverse, optimize=True)
    hessian += np.einsum("eq,eqbk,eqam->eakbm", 2.0 * phi * slope, inverse, inverse, optimize=True)
    bent = np.einsum("eq,eqai,eqbi->eqab", 2.0 * phi * slope, b, raised, optimize=True)
    hessian -= np.einsum("eqab,eqk,eqm->eakbm", bent, normal, normal, optimize=True)
    hessian += np.einsum("eq,eqai,eqbi,km->eakbm", 2.0 * slope, b, b, unit, optimize=True)
    lifted = np.einsum("eq,aq,eqbm,k->eakbm", follower, membrane.shapes, curtain, unit[2], optimize=True)
    hessian -= lifted + lifted.transpose(0, 3, 4, 1, 2)
    turned = np.einsum("eq,eqa,eqb->eab", follower * height, b[..., 0], b[..., 1], optimize=True)
    turned -= turned.swapaxes(1, 2)
    hessian[:, :, 0, :, 1] -= turned
    hessian[:, :, 1, :, 0] += turned

    gradient = np.zeros_like(vertices)
    np.add.at(gradient, membrane.elements, forces)
    slots = membrane.slots.ravel()
    inside = slots >= 0
    values = np.zeros(len(membrane.constant))
    np.add.at(values, slots[inside], hessian.ravel()[inside])
    return gradient, values
