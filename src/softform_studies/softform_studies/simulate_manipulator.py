"""Seconds a simulated shape of the manipulator on one core: with SuperLU, with PARDISO, and in FElupe.

FElupe solves the same mesh with the same laws (`solid_in_felupe`). It is an extra, as MKL PARDISO is; where one is
missing, so are its figures.
"""

import importlib.util
import time
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from softform_core.arrays import Array
from softform_core.bodies.solid.description import SolidBody
from softform_core.bodies.solid.equilibrium import SolidProblem
from softform_core.bodies.solid.model import build_solid
from softform_core.robots import load_robot
from softform_core.simulation.newton import find_equilibria
from softform_core.simulation.simulated_body import SimulatedBody
from softform_core.units import MM_PER_M
from softform_studies.simulate import random_commands, solved

PAPER_SECONDS = 900.0
"""Paper 000, Table II."""

_FELUPE_PRESSURES = np.array([20e3, 0.0, 0.0, 0.0, 10e3, 0.0])
"""A moderate load, Pa: FElupe's Newton method needs smaller steps than ours."""
_FELUPE_STEPS = (4, 8, 16)


def run(shapes: int = 20, seed: int = 0) -> dict[str, Any]:
    """JSON-ready figures.

    Args:
        shapes: Number of random actuations.
        seed: Seed of the actuations.
    """
    robot = load_robot("manipulator")
    assert isinstance(robot.body, SolidBody)
    values = random_commands(robot, shapes, seed)
    solid = build_solid(robot.body)
    problems = {"superlu": SolidProblem(solid, pardiso=False)}
    if importlib.util.find_spec("pypardiso"):
        problems["pardiso"] = SolidProblem(solid)
    with threadpool_limits(1):
        return {
            "unknowns": len(problems["superlu"].rest),
            **{name: _times(problem, values) for name, problem in problems.items()},
            "felupe": _beside_felupe(problems) if importlib.util.find_spec("felupe") else None,
            "paper_seconds_per_shape": PAPER_SECONDS,
        }


def _times(body: SimulatedBody, values: Array) -> dict[str, Any]:
    """Processor time of each shape."""
    found, seconds, _ = solved(body, values)
    return {
        "shapes": len(values),
        "converged_share": float(np.mean([one.found[0] for one in found])),
        "core_seconds_per_shape": float(np.median(seconds)),
        "core_seconds_per_shape_mean": float(np.mean(seconds)),
        "core_seconds_per_shape_max": float(np.max(seconds)),
        "iterations_median": float(np.median([one.iterations[0] for one in found])),
    }


def _beside_felupe(problems: dict[str, SolidProblem]) -> dict[str, Any]:
    """One shape by us and by FElupe, with PARDISO if it is there; FElupe with the fewest load steps that converge."""
    import felupe

    from softform_studies.solid_in_felupe import FelupeSolid

    name, problem = list(problems.items())[-1]
    solvers: dict[str, Any] = {}
    if name == "pardiso":
        from pypardiso import spsolve

        solvers["solver"] = spsolve
    begin = time.process_time()
    ours = find_equilibria(problem, _FELUPE_PRESSURES[None])
    our_seconds = time.process_time() - begin
    theirs = FelupeSolid(problem.solid)
    for steps in _FELUPE_STEPS:
        begin = time.process_time()
        try:
            found = theirs.solve(_FELUPE_PRESSURES, steps, **solvers)
        except felupe.tools.NewtonConvergenceError:
            continue
        seconds = time.process_time() - begin
        apart = np.linalg.norm(problem.solid.surface @ found.nodes - problem.points(ours.unknowns)[0], axis=1)
        return {
            "linear_solver": name,
            "load_steps": steps,
            "iterations": found.iterations,
            "core_seconds": seconds,
            "our_core_seconds": our_seconds,
            "our_iterations": int(ours.iterations[0]),
            "felupe_over_ours": seconds / our_seconds,
            "apart_mm_max": MM_PER_M * float(apart.max()),
        }
    return {"linear_solver": name, "error": f"did not converge with {_FELUPE_STEPS[-1]} load steps"}
