"""Realities at random: the same for the same seed, of every kind of body, and each has a shape."""

import numpy as np
import pytest

from softform_core.errors import SoftformError
from softform_core.robots import Robot, load_robot
from softform_rig.draw_reality import draw_reality
from softform_rig.live_body import LiveBody, Memory
from softform_rig.reality import Creep, load_reality

ROBOTS = ("membrane", "three_chamber", "planar_fingers", "tendon_rod")


@pytest.fixture(scope="module", params=ROBOTS)
def robot(request: pytest.FixtureRequest) -> Robot:
    return load_robot(request.param)


def test_a_seed_draws_one_reality_and_the_notation_names_it(robot: Robot) -> None:
    drawn = [draw_reality(robot, seed) for seed in range(30)]
    assert drawn == [draw_reality(robot, seed) for seed in range(30)]
    assert len({str(reality) for reality in drawn}) == 30
    assert load_reality("drawn:7", robot) == drawn[7]
    for wrong in ("drawn:", "drawn:-1", "drawn:x"):
        with pytest.raises(SoftformError, match="no seed"):
            load_reality(wrong, robot)


def test_what_differs_is_not_the_same_in_every_draw(robot: Robot) -> None:
    drawn = [draw_reality(robot, seed) for seed in range(30)]
    for field in ("hysteresis", "creep"):
        assert 5 < sum(field in reality.model_fields_set for reality in drawn) < 28
    lowest, highest = 0.0, 0.04 * float(np.mean(robot.actuator_max - robot.actuator_min))
    assert all(lowest <= reality.hysteresis <= highest for reality in drawn)
    sensors = "pressure_sensors" if robot.quantity == "pressure" else "motors"
    assert any(sensors in reality.model_fields_set for reality in drawn)


def test_drawn_bodies_have_shapes_at_the_ends_of_the_range(robot: Robot) -> None:
    for seed in (0, 1):
        reality = draw_reality(robot, seed)
        live = LiveBody(robot, reality)
        for commanded in (robot.actuation_max, robot.actuation_min):
            assert np.isfinite(live.commanded_shape(commanded)).all()


def test_drawn_membranes_miss_what_scans_miss() -> None:
    holes = np.array([draw_reality(load_robot("membrane"), seed).scanner.holes for seed in range(200)])
    assert 4.0 < holes.mean() < 8.0
    assert holes.min() >= 2.0
    assert holes.max() <= 14.0


def test_drawn_solids_have_another_mesh_and_can_be_built() -> None:
    robot = load_robot("manipulator")
    for seed in range(6):
        body = draw_reality(robot, seed).body
        assert body.cells != robot.body.cells
        assert len(robot.body.real_simulator(body).rest) < 12_000, "affordable"


@pytest.mark.parametrize("name", ["manipulator", "compressible"])
def test_drawn_scanners_see_arms_from_all_sides(name: str) -> None:
    robot = load_robot(name)
    for seed in range(20):
        scanner = draw_reality(robot, seed).scanner
        away = np.array(scanner.viewpoints) - scanner.look_at
        around = np.sort(np.arctan2(away[:, 1], away[:, 0]))
        assert np.diff(around, append=around[0] + 2.0 * np.pi).max() < np.radians(150.0)
        assert (np.abs(away[:, 2]) < 0.4 * np.linalg.norm(away, axis=1)).all()
        assert robot.body.box[0][2] < scanner.look_at[2] < robot.body.box[1][2]


def test_creep_follows_a_share_of_a_change_slowly() -> None:
    robot = load_robot("membrane")
    reality = load_reality("ideal", robot).model_copy(update={"creep": Creep(share=0.1, time=20.0)})
    memory, asked = Memory(reality, 9), np.full(9, 1000.0)
    at_once, later, at_last = (memory.feel(asked, seconds) for seconds in (0.0, 20.0, 1e4))
    np.testing.assert_allclose(at_once, 900.0)
    np.testing.assert_allclose(later, 1000.0 - 100.0 / np.e)
    np.testing.assert_allclose(at_last, 1000.0)
