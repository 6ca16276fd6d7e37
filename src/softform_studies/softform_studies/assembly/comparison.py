"""Bodies solved with the compiled assembly of gradient and Hessian and with numpy's, in turns."""

import time
from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np

from softform_core.arrays import Array
from softform_core.robots import Robot, load_robot
from softform_core.simulation.newton import find_equilibria
from softform_core.simulation.simulated_body import equilibrium_unknowns
from softform_studies.assembly.rods import rod_assembly, tendon_rod_assembly

_REPEATS = 5


COMPARED: dict[str, Callable[[Any], Any]] = {
    "three_chamber": rod_assembly,
    "planar_fingers": rod_assembly,
    "tendon_rod": tendon_rod_assembly,
}
"""Of each robot the assembly by numpy of its model."""


def compare(problem: Any, assembly: Any, commands: Array) -> dict[str, float]:
    """Processor time of whole equilibria and of an assembly alone; energy and factorisation are the same in both.

    Args:
        problem: An `EquilibriumProblem` that takes many samples at once.
        assembly: What replaces its `derivatives`.
        commands: (n, k) actuator values; each is solved by itself, and all at once.
    """
    by_numpy = copy(problem)
    by_numpy.derivatives = assembly
    unknowns = equilibrium_unknowns(problem, commands)  # compiles the kernels
    first = unknowns[:1], commands[:1]
    one_by_one = [values[None] for values in commands]

    def solve(body: Any, parts: list[Array]) -> None:
        for values in parts:
            find_equilibria(body, values)

    alone = least_seconds(lambda: solve(problem, one_by_one), lambda: solve(by_numpy, one_by_one))
    together = least_seconds(lambda: solve(problem, [commands]), lambda: solve(by_numpy, [commands]))
    assemblies = least_seconds(lambda: problem.derivatives(*first), lambda: assembly(*first))
    return {
        "shapes": len(commands),
        "compiled_core_seconds": assemblies[0],
        "numpy_core_seconds": assemblies[1],
        "numpy_over_compiled": assemblies[1] / assemblies[0],
        "shape_core_seconds": alone[0] / len(commands),
        "shape_by_numpy_over_ours": alone[1] / alone[0],
        "shapes_at_once_by_numpy_over_ours": together[1] / together[0],
    }


def least_seconds(*ways: Callable[[], object], repeats: int = _REPEATS) -> list[float]:
    """Least processor time of each way, s, in turns."""
    spent = np.empty((repeats, len(ways)))
    for turn in spent:
        for index, way in enumerate(ways):
            begin = time.process_time()
            way()
            turn[index] = time.process_time() - begin
    return [float(one) for one in spent.min(axis=0)]


def model_and_assembly(name: str) -> tuple[Robot, Any, Any]:
    """Robot, model and assembly by numpy of one of the robots `COMPARED`."""
    robot = load_robot(name)
    problem = robot.body.simulator()
    return robot, problem, COMPARED[name](problem)
