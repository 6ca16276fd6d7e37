"""FElupe, which knows nothing of our kernels, finds the same forces and the same shape of a solid."""

import re

import numpy as np
import pytest
import yaml
from scipy.sparse.linalg import splu

from softform_core.bodies.freeform.description import FreeformBody
from softform_core.bodies.freeform.simulator import simulator
from softform_core.bodies.solid.description import SolidBody
from softform_core.bodies.solid.equilibrium import SolidProblem
from softform_core.bodies.solid.model import build_solid
from softform_core.paths import home
from softform_core.robots import load_robot
from softform_core.simulation.newton import find_equilibria

pytest.importorskip("felupe")

PRESSURES = np.array([8e3, 0.0, 3e3])


def solve_symmetric(matrix, right_side):
    """In half the time that FElupe's own solver takes, whose order is not one for symmetric matrices."""
    ordered = {"permc_spec": "MMD_AT_PLUS_A", "diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}}
    return splu(matrix.tocsc(), **ordered).solve(right_side)


@pytest.fixture(scope="module", params=["wedges", "tetrahedra"])
def problem(request: pytest.FixtureRequest) -> SolidProblem:
    """One short segment, on few cells, or a cone with slanted chambers."""
    if request.param == "tetrahedra":
        pytest.importorskip("gmsh", reason="gmsh, which meshes it, is not installed")
        page = (home() / "docs" / "robots" / "freeform.md").read_text(encoding="utf-8")
        body = yaml.safe_load(re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)[0])["body"]
        soft = {"law": "yeoh", "coefficients": [13e3, 5e2, 1e3]}
        return simulator(FreeformBody.model_validate(body | {"mesh_size": 0.03, "material": soft}))
    described = load_robot("manipulator").body.model_dump()
    described |= {"cells": {"chamber": 2, "rib": 1, "layers": 2}, "segments": 1, "length": 0.1}
    return SolidProblem(build_solid(SolidBody.model_validate(described)))


@pytest.mark.long
def test_forces_and_shape_are_those_of_felupe(problem: SolidProblem) -> None:
    from solid_in_felupe import FelupeSolid

    felupe_solid = FelupeSolid(problem.solid)
    moved = problem.rest + 1e-4 * np.random.default_rng(0).standard_normal(problem.rest.shape)
    ours = problem.derivatives(moved[None], PRESSURES[None])[0][0]
    theirs = problem.unknowns(felupe_solid.forces(problem.nodes(moved), PRESSURES))[0]
    assert np.abs(theirs - ours).max() < 1e-9 * np.abs(ours).max()

    found = find_equilibria(problem, PRESSURES[None])
    assert found.failures == [""]
    shape = felupe_solid.solve(PRESSURES, 1, solve_symmetric)
    nodes = problem.nodes(found.unknowns[0])
    bent = np.linalg.norm(nodes - problem.solid.nodes, axis=1).max()
    assert bent > 0.002
    assert np.abs(problem.unknowns(shape.nodes) - found.unknowns).max() < 1e-5 * bent
