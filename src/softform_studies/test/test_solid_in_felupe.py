"""FElupe, which knows nothing of our kernels, finds the same forces and the same shape of a solid."""

import numpy as np
import pytest

from softform_core.bodies.freeform.description import FreeformBody
from softform_core.bodies.freeform.reality import simulator
from softform_core.bodies.solid.description import SolidBody
from softform_core.bodies.solid.equilibrium import SolidProblem
from softform_core.bodies.solid.model import build_solid
from softform_core.robots import load_robot
from softform_core.simulation.newton import find_equilibria

pytest.importorskip("felupe")

PRESSURES = np.array([8e3, 0.0, 3e3])

CONE = {
    "kind": "freeform",
    "shape": [{"part": "cylinder", "begin": (0, 0, 0), "end": (0, 0, 0.05), "radius": 0.025, "end_radius": 0.018}],
    "chambers": [
        [{"part": "cylinder", "begin": (x, y, 0.012), "end": (0.7 * x, 0.7 * y, 0.038), "radius": 0.006}]
        for x, y in ((0.013, 0.0), (-0.0065, 0.01126), (-0.0065, -0.01126))
    ],
    "rigid": [{"part": "box", "begin": (-0.03, -0.03, z), "end": (0.03, 0.03, z + 0.006)} for z in (0.0, 0.044)],
    "mesh_size": 0.02,
    "density": 1080.0,
    "material": {"law": "yeoh", "coefficients": [8e3, 3e2, 6e2]},
    "fibre_modulus": 1e6,
    "gravity": (0, 0, 9.81),
}


@pytest.fixture(scope="module", params=["wedges", "tetrahedra"])
def problem(request: pytest.FixtureRequest) -> SolidProblem:
    """One short segment, on few cells, or a cone with slanted chambers."""
    if request.param == "tetrahedra":
        pytest.importorskip("gmsh", reason="gmsh, which meshes it, is not installed")
        return simulator(FreeformBody.model_validate(CONE))
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
    shape = felupe_solid.solve(PRESSURES, 1)
    nodes = problem.nodes(found.unknowns[0])
    bent = np.linalg.norm(nodes - problem.solid.nodes, axis=1).max()
    assert bent > 0.0015
    assert np.abs(problem.unknowns(shape.nodes) - found.unknowns).max() < 1e-5 * bent
