"""Data sets of tips: the grid, Eq. 3, stores that go on, and the command."""

from pathlib import Path

import numpy as np
import pytest
import yaml
import zarr
from click.testing import CliRunner
from equilibria import simulate_tips

from softform_core.cli.simulate import simulate
from softform_core.equations.tip import difference_jacobian
from softform_core.errors import SoftformError
from softform_core.paths import robot_file
from softform_core.robots import Robot, load_robot
from softform_core.simulation.generate import generate
from softform_core.simulation.sampling import grid, grid_actuations
from softform_core.simulation.store import SampleStatus, SimulationStore, open_simulation
from softform_core.training.tips import learn_tip_kinematics

FINGERS, THREE_CHAMBER = load_robot("planar_fingers", "tip"), load_robot("three_chamber", "tip")


def _generate(robot: Robot, path: Path, segments: int, jobs: int | None = None) -> SimulationStore:
    return generate(robot, grid(robot, segments), path, jobs=jobs, progress=False)


def _difference_step(robot: Robot, segments: int) -> np.ndarray:
    """Delta c of Eq. 3, (m,): one part in 10 N of the range."""
    return (robot.actuation_max - robot.actuation_min) / (10.0 * segments)


def test_the_grid_has_n_values_of_each_actuation_as_the_paper():
    assert len(grid(THREE_CHAMBER, THREE_CHAMBER.tip.segments).actuations) == 4096
    found = grid_actuations(FINGERS.actuation_min, FINGERS.actuation_max, FINGERS.tip.segments)
    assert found.shape == (24389, 3)
    assert len(np.unique(found, axis=0)) == 24389
    ends = [found.min(axis=0), found.max(axis=0)]
    np.testing.assert_array_equal(ends, [FINGERS.actuation_min, FINGERS.actuation_max])
    np.testing.assert_allclose(_difference_step(FINGERS, 29), 120000.0 / 290.0)


@pytest.mark.parametrize("robot", [THREE_CHAMBER, FINGERS], ids=lambda robot: robot.name)
def test_jacobians_of_a_data_set_are_those_of_equation_3(robot, tmp_path):
    actuations, tips, jacobians = _generate(robot, tmp_path / "tips.zarr", 3).converged()
    rod, step = robot.body.simulator(), _difference_step(robot, robot.tip.segments)[0]
    expected = np.array(
        [
            difference_jacobian(lambda a: simulate_tips(rod, robot, a[None])[0], actuation, step)
            for actuation in actuations
        ]
    )
    # At the corners of the grid the step leaves the range; at zero, a pair of chambers has the mean of both sides.
    np.testing.assert_allclose(jacobians, expected, atol=1e-3 * np.abs(expected).max())
    np.testing.assert_allclose(tips, simulate_tips(rod, robot, actuations), atol=1e-12)


@pytest.mark.parametrize("robot", [THREE_CHAMBER, FINGERS], ids=lambda robot: robot.name)
def test_jacobians_foretell_small_moves(robot):
    rod, rng = robot.body.simulator(), np.random.default_rng(1)
    span = robot.actuation_max - robot.actuation_min
    actuations = robot.actuation_min + (0.1 + 0.8 * rng.random((5, 3))) * span
    step = 1e-6 * span[0]
    moves = [robot.actuators_of(actuations + h) - robot.actuators_of(actuations - h) for h in step * np.eye(3)]
    by_actuation = np.stack(moves, axis=2) / (2.0 * step)
    solved = robot.body.sampled().solve(robot.actuators_of(actuations), by_actuation)
    tips, jacobians = solved.outputs["tip"], solved.outputs["jacobian"]
    move = 0.002 * span * rng.choice([-1.0, 1.0], (5, 3))
    foretold = np.einsum("sij,sj->si", jacobians, move)
    moved = simulate_tips(rod, robot, actuations + move) - tips
    np.testing.assert_allclose(foretold, moved, atol=0.02 * np.abs(moved).max())


def test_a_run_that_was_cut_short_goes_on_where_it_stopped(tmp_path):
    path = tmp_path / "tips.zarr"
    store = _generate(THREE_CHAMBER, path, 3, jobs=1)
    whole = store.converged()
    assert len(whole[0]) == 27
    group = zarr.open_group(path, mode="r+")
    group["status"][:] = SampleStatus.PENDING
    group["tip"][:] = np.nan
    assert open_simulation(path, THREE_CHAMBER).pending.tolist() == list(range(27))
    again = _generate(THREE_CHAMBER, path, 3, jobs=2)
    assert not len(again.pending)
    for first, second in zip(whole, again.converged(), strict=True):
        np.testing.assert_array_equal(first, second)
    assert {"strategy", "segments", "command", "git_revision", "created"} <= set(again.attributes)


def test_a_store_of_another_grid_or_robot_is_rejected(tmp_path):
    path = tmp_path / "tips.zarr"
    _generate(THREE_CHAMBER, path, 2)
    with pytest.raises(SoftformError, match="segments 2, not 4"):
        _generate(THREE_CHAMBER, path, 4)
    with pytest.raises(SoftformError, match="was made for robot 'three_chamber'"):
        _generate(FINGERS, path, 2)
    with pytest.raises(SoftformError, match="span no range"):
        _generate(FINGERS, tmp_path / "none.zarr", 1)


def test_the_command_takes_segments_for_a_tip_and_samples_for_a_surface(tmp_path):
    path = str(tmp_path / "tips.zarr")
    done = CliRunner().invoke(simulate, ["--robot", "three_chamber", "--segments", "2", "--output", path])
    assert done.exit_code == 0, done.output
    assert "8 of 8 tips converged" in done.output
    for wrong in (["--robot", "three_chamber", "--samples", "9"], ["--robot", "membrane", "--segments", "3"]):
        rejected = CliRunner().invoke(simulate, [*wrong, "--output", path])
        assert rejected.exit_code == 2
        assert "does not fit the robot" in rejected.output


def test_an_actuation_without_equilibrium_is_kept_as_failed_and_left_out(tmp_path):
    described = yaml.safe_load(robot_file("three_chamber").read_text())
    # So soft, the actuator cannot stand under every pressure.
    described["body"]["section"]["material"] = {"law": "neo_hookean", "coefficients": [6000.0]}
    path = tmp_path / "soft.yaml"
    path.write_text(yaml.safe_dump(described))
    robot = load_robot(path, "tip")
    store = _generate(robot, tmp_path / "tips.zarr", 3)
    failed = store.status == SampleStatus.FAILED
    assert 0 < failed.sum() < len(store)
    actuations, tips, jacobians = store.converged()
    assert len(actuations) == (~failed).sum()
    assert np.isfinite(tips).all()
    assert np.isfinite(jacobians).all()
    assert not len(store.pending)  # a failed sample is not tried again


def test_an_unfinished_simulation_is_not_learned_from(tmp_path):
    path = tmp_path / "tips.zarr"
    _generate(THREE_CHAMBER, path, 3)
    zarr.open_group(path, mode="r+")["status"][5] = SampleStatus.PENDING
    zarr.open_group(path, mode="r+").attrs["command"] = "softform simulate --robot three_chamber --segments 3"
    with pytest.raises(SoftformError, match=r"is not finished. Go on with: \./softform simulate .* --segments 3"):
        learn_tip_kinematics(THREE_CHAMBER, path, tmp_path / "models", 0)
    assert not (tmp_path / "models").exists()
