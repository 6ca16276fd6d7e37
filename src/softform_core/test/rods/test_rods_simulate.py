"""Data sets of tips: the grid, Eq. 3, stores that go on, and the command."""

import numpy as np
import pytest
import yaml
import zarr
from click.testing import CliRunner

from softform_core.bodies.rod.model import build_rod
from softform_core.cli.simulate import simulate
from softform_core.errors import SoftformError
from softform_core.paths import robot_file
from softform_core.robots import load_robot
from softform_core.rods.learn import learn_tip_kinematics
from softform_core.rods.simulate import (
    difference_step,
    generate_tips,
    grid_actuations,
    simulate_tips,
    simulate_tips_and_jacobians,
)
from softform_core.rods.store import open_tips
from softform_core.simulation.store import SampleStatus

FINGERS, THREE_CHAMBER = load_robot("planar_fingers", "tip"), load_robot("three_chamber", "tip")


def test_the_grid_has_n_values_of_each_actuation_as_the_paper():
    assert len(grid_actuations(THREE_CHAMBER, THREE_CHAMBER.tip.segments)) == 4096
    grid = grid_actuations(FINGERS, FINGERS.tip.segments)
    assert grid.shape == (24389, 3)
    assert len(np.unique(grid, axis=0)) == 24389
    np.testing.assert_array_equal([grid.min(axis=0), grid.max(axis=0)], [FINGERS.actuation_min, FINGERS.actuation_max])
    np.testing.assert_allclose(difference_step(FINGERS, 29), 120000.0 / 290.0)


@pytest.mark.parametrize("robot", [THREE_CHAMBER, FINGERS], ids=lambda robot: robot.name)
def test_jacobians_foretell_small_moves(robot):
    rod, rng = build_rod(robot.body), np.random.default_rng(1)
    span = robot.actuation_max - robot.actuation_min
    actuations = robot.actuation_min + (0.1 + 0.8 * rng.random((5, 3))) * span
    tips, jacobians = simulate_tips_and_jacobians(rod, robot, actuations, difference_step(robot, robot.tip.segments))
    move = 0.002 * span * rng.choice([-1.0, 1.0], (5, 3))
    foretold = np.einsum("sij,sj->si", jacobians, move)
    moved = simulate_tips(rod, robot, actuations + move) - tips
    np.testing.assert_allclose(foretold, moved, atol=0.02 * np.abs(moved).max())


def test_a_run_that_was_cut_short_goes_on_where_it_stopped(tmp_path):
    path = tmp_path / "tips.zarr"
    store = generate_tips(THREE_CHAMBER, path, segments=3, jobs=1, progress=False)
    whole = store.converged()
    assert len(whole[0]) == 27
    group = zarr.open_group(path, mode="r+")
    group["status"][:] = SampleStatus.PENDING
    group["tip"][:] = np.nan
    assert open_tips(path, THREE_CHAMBER).pending_blocks == [slice(0, 27)]
    again = generate_tips(THREE_CHAMBER, path, segments=3, jobs=2, progress=False)
    assert again.pending_blocks == []
    for first, second in zip(whole, again.converged(), strict=True):
        np.testing.assert_array_equal(first, second)
    assert {"segments", "difference_pa", "command", "git_revision", "created"} <= set(again.attributes)


def test_a_store_of_another_grid_or_robot_is_refused(tmp_path):
    path = tmp_path / "tips.zarr"
    generate_tips(THREE_CHAMBER, path, segments=2, progress=False)
    with pytest.raises(SoftformError, match="has 2 values of each actuation, not 4"):
        generate_tips(THREE_CHAMBER, path, segments=4, progress=False)
    with pytest.raises(SoftformError, match="was made for robot 'three_chamber'"):
        generate_tips(FINGERS, path, segments=2, progress=False)
    with pytest.raises(SoftformError, match="span no range"):
        generate_tips(FINGERS, tmp_path / "none.zarr", segments=1, progress=False)


def test_the_command_takes_segments_for_a_tip_and_samples_for_a_surface(tmp_path):
    path = str(tmp_path / "tips.zarr")
    done = CliRunner().invoke(simulate, ["--robot", "three_chamber", "--segments", "2", "--output", path])
    assert done.exit_code == 0, done.output
    assert "8 of 8 tips converged" in done.output
    for wrong in (["--robot", "three_chamber", "--samples", "9"], ["--robot", "membrane", "--segments", "3"]):
        refused = CliRunner().invoke(simulate, [*wrong, "--output", path])
        assert refused.exit_code == 2
        assert "does not fit the robot" in refused.output


def test_an_actuation_without_equilibrium_is_kept_as_failed_and_left_out(tmp_path):
    described = yaml.safe_load(robot_file("three_chamber").read_text())
    # So soft, the actuator cannot stand under every pressure.
    described["body"]["section"]["material"] = {"law": "neo_hookean", "coefficients": [12000.0]}
    path = tmp_path / "soft.yaml"
    path.write_text(yaml.safe_dump(described))
    robot = load_robot(path, "tip")
    store = generate_tips(robot, tmp_path / "tips.zarr", segments=3, progress=False)
    failed = store.status == SampleStatus.FAILED
    assert 0 < failed.sum() < len(store)
    actuations, tips, jacobians = store.converged()
    assert len(actuations) == (~failed).sum()
    assert np.isfinite(tips).all()
    assert np.isfinite(jacobians).all()
    assert store.pending_blocks == []  # a failed sample is not tried again


def test_an_unfinished_simulation_is_not_learned_from(tmp_path):
    path = tmp_path / "tips.zarr"
    generate_tips(THREE_CHAMBER, path, segments=3, progress=False)
    zarr.open_group(path, mode="r+")["status"][5] = SampleStatus.PENDING
    with pytest.raises(SoftformError, match="is not finished"):
        learn_tip_kinematics(THREE_CHAMBER, path, tmp_path / "models", 0)
    assert not (tmp_path / "models").exists()
