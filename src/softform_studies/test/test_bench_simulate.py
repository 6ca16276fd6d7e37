"""What `bench simulate` measures the compiled assembly against, the robots beside the membrane, and a device."""

import numpy as np
import pytest
from click.testing import CliRunner

from softform_core.cli.main import main
from softform_core.robots import load_robot
from softform_core.simulation.newton import find_equilibria
from softform_core.simulation.warp_device import INSTALL
from softform_studies import simulate_on_device
from softform_studies.simulate import PAPER_SECONDS, other_robot, taut_gradient_and_hessian


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
    np.testing.assert_allclose(values + membrane.constant, hessian.matrix.data, atol=1e-8)
    assert np.abs(values).max() > 1000.0


def test_the_arm_of_bellows_is_solved_in_less_than_the_paper_needs():
    figures = other_robot("compressible", 5, 0)
    assert figures["converged_share"] == 1.0 and figures["shapes"] == 5
    assert figures["core_seconds_per_shape_max"] < 0.1 * PAPER_SECONDS["compressible"]


def test_a_device_stands_beside_the_single_solver():
    pytest.importorskip("warp", reason=f"Warp is an extra: {INSTALL}")
    membrane = simulate_on_device.run("cpu", 3)
    for figures in (membrane, membrane["others"]["three_chamber"]):
        assert figures["shapes"] == figures["single_solver"]["shapes"] == 3
        assert figures["converged_share"] == 1.0 and figures["left_to_the_single_solver"] == 0
        assert figures["same_bits_again"] and figures["single_solver"]["largest_distance_m"] < 1e-6
        assert figures["single_over_device"] * figures["seconds_per_shape"] == pytest.approx(
            figures["single_solver"]["core_seconds_per_shape"]
        )
    assert membrane["single_solver"]["largest_distance_m"] > 0.0  # rods may have the same bits


def test_a_device_that_is_not_there_is_named():
    pytest.importorskip("warp", reason=f"Warp is an extra: {INSTALL}")
    result = CliRunner().invoke(main, ["bench", "simulate", "--device", "cuda:99"])
    assert result.exit_code == 2 and "no device 'cuda:99' here" in result.stderr
