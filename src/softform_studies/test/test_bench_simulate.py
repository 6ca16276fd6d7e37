"""The assembly that `bench simulate` measures the compiled one against, and the robots beside the membrane."""

import numpy as np
import pytest

from softform_core.robots import load_robot
from softform_core.simulation.newton import find_equilibria
from softform_studies.assembly.comparison import COMPARED, model_and_assembly
from softform_studies.assembly.membrane import taut_gradient_and_hessian
from softform_studies.simulate import PAPER_SECONDS, other_robot, random_commands


def test_numpy_assembles_what_the_compiled_code_does():
    body = load_robot("membrane").body.simulator()
    pressures, membrane = np.linspace(1000.0, 4000.0, 9), body.membrane
    unknowns = find_equilibria(body, pressures[None]).unknowns
    forces, values = taut_gradient_and_hessian(membrane, body.points(unknowns)[0], pressures)
    held = membrane.springs @ (body.points(unknowns)[0] - membrane.rest_vertices) - membrane.weight
    gradient, hessian = body.derivatives(unknowns, pressures[None])
    # At equilibrium the gradient itself is nil: what its parts sum up to is compared with their size.
    np.testing.assert_allclose((forces + held).ravel()[membrane.pattern.order], gradient[0], atol=1e-12)
    assert np.abs(forces).max() > 0.1
    np.testing.assert_allclose(values + membrane.pattern.constant, hessian.matrix.data, atol=1e-8)
    assert np.abs(values).max() > 1000.0


@pytest.mark.parametrize("name", COMPARED)
def test_numpy_assembles_many_rods_as_the_compiled_code_does(name):
    robot, body, assembly = model_and_assembly(name)
    commands = random_commands(robot, 3, 1)
    unknowns = find_equilibria(body, commands).unknowns
    unknowns += 0.03 * np.random.default_rng(0).normal(size=unknowns.shape)  # gradients that are not nil
    found, expected = assembly(unknowns, commands), body.derivatives(unknowns, commands)
    for one, other in ((found[0], expected[0]), (found[1].blocks, expected[1].blocks)):
        assert np.abs(one - other).max() < 1e-10 * np.abs(other).max()
        assert np.abs(other).max() > 1e-3


def test_the_arm_of_bellows_is_solved_in_less_than_the_paper_needs():
    figures = other_robot("compressible", 5, 0)
    assert figures["converged_share"] == 1.0 and figures["shapes"] == 5
    assert figures["core_seconds_per_shape_max"] < 0.1 * PAPER_SECONDS["compressible"]
