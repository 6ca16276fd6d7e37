"""What `bench simulate` prints, of bodies one at a time and of many membranes on a device."""

import pytest
from click.testing import CliRunner

from softform_core.cli.main import main
from softform_core.simulation.warp_device import INSTALL
from softform_studies.simulate import PAPER_SECONDS, of_robot, run_on_device


def test_the_arm_of_bellows_is_solved_in_less_than_the_paper_needs():
    figures = of_robot("compressible", 5, 0)
    assert figures["converged_share"] == 1.0 and figures["shapes"] == 5
    assert figures["core_seconds_per_shape_max"] < 0.1 * PAPER_SECONDS["compressible"]
    assert figures["core_seconds_per_shape"] <= figures["core_seconds_per_shape_max"]


@pytest.mark.long
def test_a_device_stands_beside_the_single_solver():
    pytest.importorskip("warp", reason=f"Warp is an extra: {INSTALL}")
    figures = run_on_device("cpu", 3)
    assert figures["shapes"] == figures["single_solver"]["shapes"] == 3
    assert figures["converged_share"] == 1.0 and figures["left_to_the_single_solver"] == 0
    assert figures["same_bits_again"] and 0.0 < figures["single_solver"]["largest_distance_m"] < 1e-6
    assert figures["single_over_device"] * figures["seconds_per_shape"] == pytest.approx(
        figures["single_solver"]["core_seconds_per_shape"]
    )


def test_a_device_that_is_not_there_is_named():
    pytest.importorskip("warp", reason=f"Warp is an extra: {INSTALL}")
    result = CliRunner().invoke(main, ["bench", "simulate", "--device", "cuda:99"])
    assert result.exit_code == 2 and "no device 'cuda:99' here" in result.stderr
