"""The simulators of a rod: as described, for data sets, and as a real one differs from it.

docs/steps/waypoints-001.md explains every field of a reality.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.bodies.realities import log_uniform, some_of
from softform_core.bodies.rod.description import RodBody, RodShape
from softform_core.bodies.rod.equilibrium import RodProblem, solve_equilibria, tip_sensitivities
from softform_core.bodies.rod.model import AS_DESCRIBED, Fabrication, GentWall, RealRod, RealShape, build_rod
from softform_core.simulation.newton import NO_EQUILIBRIUM_ADVICE
from softform_core.simulation.sampled_body import Solved


class SampledRod:
    """`SampledBody` of a rod whose tip moves in `dimensions` coordinates: its tip and its centre line."""

    block = 512

    def __init__(self, problem: RodProblem, dimensions: int) -> None:
        self._problem, self._dimensions = problem, dimensions
        self.constants: dict[str, NDArray] = {"along": problem.along}

    def output_shapes(self, degrees_of_freedom: int) -> dict[str, tuple[int, ...]]:
        """`tip` (d,) m, `jacobian` (d, m), m by the actuators' unit, and `centre_line` (N, 3) m."""
        shapes = {"tip": (self._dimensions,), "jacobian": (self._dimensions, degrees_of_freedom)}
        return shapes | {"centre_line": (len(self.constants["along"]), 3)}

    def solve(self, actuators: Array, by_actuation: Array) -> Solved:
        """Tips under values (b, k) of the actuators, and their Jacobians by the implicit function theorem."""
        found = solve_equilibria(self._problem, actuators)
        jacobians = np.full((len(actuators), self._dimensions, by_actuation.shape[2]), np.nan)
        done = np.flatnonzero([not reason for reason in found.failures])
        moves = tip_sensitivities(self._problem, found.strains[done], actuators[done])
        jacobians[done] = moves[:, : self._dimensions] @ by_actuation[done]
        finite = np.isfinite(jacobians).all(axis=(1, 2))
        failures = [
            f"{reason or 'The equilibrium has no stiffness.'} {NO_EQUILIBRIUM_ADVICE}" if reason or not firm else ""
            for reason, firm in zip(found.failures, finite, strict=True)
        ]
        line = self._problem.line(self._problem.unknowns(found.strains))
        outputs = {"tip": found.tips[:, : self._dimensions], "jacobian": jacobians, "centre_line": line}
        return Solved(outputs, found.iterations, failures)


def simulator(body: RodBody, real: RealShape = AS_DESCRIBED) -> RodProblem:
    """The rod with its chambers, or that of a reality; errors as of `build_rod`."""
    return RodProblem(build_rod(body, real))


real_simulator = simulator


def sampled(body: RodBody) -> SampledRod:
    """The rod for data sets: its tip and centre line."""
    return SampledRod(simulator(body), body.frames["tip"])


CHANCES = {"wall": 0.8, "base_turn": 0.8, "tilt": 0.8, "fabrication": 0.9}
"""Probability that a drawn rod differs in a field."""


Reality = RealRod


def drawn_reality(nominal: RodBody, draw: np.random.Generator) -> RealRod:
    """A rod of the distribution that docs/notes/realities-at-random.md describes."""
    fields = drawn_shape(draw)
    width = min(min(chamber.width, chamber.height) for chamber in nominal.chambers)
    made = Fabrication(
        **drawn_specimen(draw), chamber_area=draw.uniform(0.01, 0.05), chamber_place=draw.uniform(0.005, 0.03) * width
    )
    return RealRod(**some_of(fields | {"fabrication": made}, CHANCES, draw), elements=drawn_elements(nominal, draw))


def drawn_shape(draw: np.random.Generator) -> dict[str, Any]:
    """Fields of `RealShape`, drawn."""
    return {
        "wall": GentWall(modulus=log_uniform(draw, 0.8, 1.25), limit=draw.uniform(8.0, 30.0)),
        "base_turn": tuple(draw.normal(0.0, 0.015, 3)),
        "tilt": tuple(draw.normal(0.0, 0.005, 2)),
    }


def drawn_specimen(draw: np.random.Generator) -> dict[str, Any]:
    """Fields of `Specimen`, drawn."""
    stiffness, length = draw.uniform(0.01, 0.05), draw.uniform(0.003, 0.015)
    return {"stiffness": stiffness, "length": length, "seed": int(draw.integers(2**31))}


def drawn_elements(nominal: RodShape, draw: np.random.Generator) -> int:
    """Elements of each section, other than the simulator's."""
    return max(2, round(nominal.elements * draw.uniform(0.6, 0.9)))
