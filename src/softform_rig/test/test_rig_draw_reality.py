"""Realities at random: the same for the same seed, of every kind of body, and each has a shape."""

import numpy as np
import pytest

from softform_core.errors import SoftformError
from softform_core.robots import Robot, load_robot
from softform_rig.board_emulation import EMULATION
from softform_rig.draw_reality import draw_reality, drawn_creep
from softform_rig.live_body import LiveBody
from softform_rig.material_memory import BoucWen, Creep, Plays
from softform_rig.reality import load_reality, memory_of

pytestmark = pytest.mark.slow

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
    assert {type(reality.hysteresis) for reality in drawn} == {float, list, Plays, BoucWen}
    assert {len(reality.creep) for reality in drawn} == {0, 1, 2}
    assert {one.overstress is None for reality in drawn for one in reality.creep} == {True, False}
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


def test_the_lag_of_every_law_is_within_the_range_of_the_distribution() -> None:
    """Upwards, and downwards, of 200 draws: 0.4 to 4 % of the range, as far as actuators and ways differ."""
    robot = load_robot("membrane")
    for seed in range(200):
        reality = draw_reality(robot, seed)
        law = memory_of(reality.model_copy(update={"creep": []}), robot)
        up, down = (float(np.mean(far - law.feel(np.full(9, far), 1.0))) for far in (4e4, -4e4))
        if "hysteresis" in reality.model_fields_set:
            assert 0.002 * 5000.0 < up < 0.08 * 5000.0 and -0.08 * 5000.0 < down < -0.002 * 5000.0
        else:
            assert up == down == 0.0


def test_other_laws_leave_the_rest_of_a_seed_as_it_was() -> None:
    """The body, scanner and registration of a seed of before memory was of several laws."""
    drawn = draw_reality(load_robot("membrane"), 7)
    assert drawn.scanner.noise == pytest.approx(0.00022666819364676233) and drawn.body.cells == 33


def test_laws_of_a_robot_of_tendons_and_chambers_are_drawn_in_the_units_of_each() -> None:
    spans, fast = np.array([3e-2, 3e-2, 6e4]), Creep(share=0.02, time=20.0)
    creep = [one for seed in range(40) for one in drawn_creep(fast, spans, np.random.default_rng(seed))]
    by_eyring = np.array([one.overstress for one in creep if one.overstress is not None]) / spans
    assert (
        len(by_eyring) > 5
        and ((by_eyring >= 0.02) & (by_eyring <= 0.2)).all()
        and np.ptp(by_eyring, axis=1).max() < 1e-9
    )
    sensors = [EMULATION.drawn(spans, np.random.default_rng(seed)) for seed in range(20)]
    behind = np.array([one.behind(3) for one in sensors if one.hysteresis]) / spans
    assert len(behind) > 5 and ((behind >= 0.001) & (behind <= 0.01)).all()
    alike = [one for seed in range(40) for one in drawn_creep(fast, spans[:2], np.random.default_rng(seed))]
    assert {type(one.overstress) for one in alike} == {float, type(None)}
