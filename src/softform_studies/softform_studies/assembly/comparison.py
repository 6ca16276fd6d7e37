"""Bodies solved with the compiled assembly of gradient and Hessian and with numpy's, in turns."""

import time
from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np

from softform_core.arrays import Array
from softform_core.bodies.bellows.description import BellowsBody
from softform_core.bodies.bellows.reality import RealBellows, real_simulator
from softform_core.robots import Robot, load_robot
from softform_core.simulation.newton import find_equilibria
from softform_core.simulation.simulated_body import equilibrium_unknowns
from softform_studies.assembly.bellows import arm_assembly, chain_assembly
from softform_studies.assembly.rods import rod_assembly, tendon_rod_assembly

_REPEATS = 5


def _chain(body: BellowsBody) -> Any:
    return real_simulator(body, RealBellows(folds=12))


COMPARED: dict[str, tuple[str, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "three_chamber": ("three_chamber", lambda body: body.simulator(), rod_assembly),
    "planar_fingers": ("planar_fingers", lambda body: body.simulator(), rod_assembly),
    "tendon_rod": ("tendon_rod", lambda body: body.simulator(), tendon_rod_assembly),
    "compressible": ("compressible", lambda body: body.simulator(), arm_assembly),
    "chain_of_discs": ("compressible", _chain, chain_assembly),
}
"""Of each body its robot, how its model is made, and the assembly by numpy of a model."""


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
    """Robot, model and assembly by numpy of one of the bodies `COMPARED`."""
    robot_name, model, assembly = COMPARED[name]
    robot = load_robot(robot_name)
    problem = model(robot.body)
    return robot, problem, assembly(problem)
