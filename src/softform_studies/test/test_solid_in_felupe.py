"""FElupe, which knows nothing of our kernels, finds the same forces and the same shape of a solid."""

import numpy as np
import pytest

from softform_core.bodies.solid.description import SolidBody
from softform_core.bodies.solid.equilibrium import SolidProblem
from softform_core.bodies.solid.model import build_solid
from softform_core.robots import load_robot
from softform_core.simulation.newton import find_equilibria

pytest.importorskip("felupe")

PRESSURES = np.array([8e3, 0.0, 3e3])


@pytest.fixture(scope="module")
def problem() -> SolidProblem:
    """One short segment, on few cells."""
    described = load_robot("manipulator").body.model_dump()
    described |= {"cells": {"chamber": 2, "rib": 1, "layers": 2}, "segments": 1, "length": 0.1}
    return SolidProblem(build_solid(SolidBody.model_validate(described)))


def test_forces_and_shape_are_those_of_felupe(problem: SolidProblem) -> None:
    from softform_studies.solid_in_felupe import FelupeSolid

    felupe_solid = FelupeSolid(problem.solid)
    moved = problem.rest + 1e-4 * np.random.default_rng(0).standard_normal(problem.rest.shape)
    ours = problem.derivatives(moved[None], PRESSURES[None])[0][0]
    theirs = problem.unknowns(felupe_solid.forces(problem.nodes(moved), PRESSURES))[0]
    assert np.abs(theirs - ours).max() < 1e-9 * np.abs(ours).max()

    found = find_equilibria(problem, PRESSURES[None])
    assert found.failures == [""]
    shape = felupe_solid.solve(PRESSURES, 2)
    nodes = problem.nodes(found.unknowns[0])
    bent = np.linalg.norm(nodes - problem.solid.nodes, axis=1).max()
    assert bent > 0.002
    assert np.abs(problem.unknowns(shape.nodes) - found.unknowns).max() < 1e-5 * bent
