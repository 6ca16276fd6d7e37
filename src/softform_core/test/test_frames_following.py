"""Whether a cloud can be of the commanded actuation: judged beside a reality that differs by millimetres."""

import numpy as np
import pytest

from softform_core.forward.robot_pipeline import load_pipeline
from softform_core.frames.following import ShapeJudge
from softform_core.halton import halton_actuations
from softform_core.robots import Robot, load_robot
from softform_core.units import MM_PER_M

pytestmark = pytest.mark.slow

ROBOT = load_robot("membrane")
SURFACE = load_pipeline(ROBOT, 70 * 70)
ACTUATIONS = halton_actuations(ROBOT.actuation_min, ROBOT.actuation_max, 8, seed=3)
JUDGE = ShapeJudge(ROBOT)


def captured(actuation: np.ndarray, seed: int = 0) -> np.ndarray:
    """A sheet that is 15 % softer and sags by 2 mm, scanned with 0.3 mm of noise and a hole."""
    random = np.random.default_rng(seed)
    points = SURFACE.points(actuation) / MM_PER_M
    points[:, 2] = 1.15 * points[:, 2] - 0.002 * np.cos(np.pi * points[:, 0] / ROBOT.extent[0])
    points += 3e-4 * random.standard_normal(points.shape)
    hole = random.uniform(-0.1, 0.1, 2)
    return points[np.linalg.norm(points[:, :2] - hole, axis=1) > 0.06]


def test_a_softer_sheet_with_holes_passes():
    judge = ShapeJudge(ROBOT)
    for number, actuation in enumerate(ACTUATIONS):
        points = captured(actuation, number)
        assert judge.fault(actuation, points) == ""
        judge.keep(number, actuation, points)


def test_a_stuck_robot_is_distinguished_from_one_that_is_asked_for_the_same_again():
    judge = ShapeJudge(ROBOT)
    judge.keep(5, ACTUATIONS[0], captured(ACTUATIONS[0]))
    again = captured(ACTUATIONS[0], seed=1)
    for actuation in ACTUATIONS[1:]:
        assert "the shape of frame 5" in judge.fault(actuation, again)
    assert judge.fault(ACTUATIONS[0] + 50.0, again) == ""


@pytest.mark.parametrize("chamber", range(9))
@pytest.mark.parametrize("jammed_at", [0.0, 1.0])
def test_a_chamber_that_does_not_follow_is_named(chamber, jammed_at):
    commanded = ACTUATIONS[1].copy()
    commanded[chamber] = (1.0 - jammed_at) * ROBOT.actuation_max[chamber]
    held = commanded.copy()
    held[chamber] = jammed_at * ROBOT.actuation_max[chamber]
    said = JUDGE.fault(commanded, captured(held))
    assert f"{ROBOT.actuators[chamber]} is at {commanded[chamber]:.0f} Pa" in said


def bent(robot: Robot, actuation: np.ndarray, seed: int = 0) -> np.ndarray:
    """An arm that bends a little less than simulated, with noise and a hole at its middle."""
    random = np.random.default_rng(seed)
    points = load_pipeline(robot, 40 * 40).points(0.94 * actuation) / MM_PER_M
    points += 3e-4 * random.standard_normal(points.shape)
    return points[np.linalg.norm(points - points[random.integers(len(points))], axis=1) > 0.02]


def test_an_arm_that_bends_away_from_its_resting_shape_is_judged_too():
    robot = load_robot("manipulator")
    judge = ShapeJudge(robot)
    actuations = halton_actuations(robot.actuation_min, robot.actuation_max, 4, seed=3)
    for number, actuation in enumerate(actuations):
        points = bent(robot, actuation, number)
        assert judge.fault(actuation, points) == ""
        judge.keep(number, actuation, points)
    again = bent(robot, actuations[-1], seed=9)
    assert "the shape of frame 3" in judge.fault(actuations[0], again)
    held = actuations[1].copy()
    held[3] = 0.0 if actuations[1][3] > 30e3 else 60e3
    assert "c4 is at" in judge.fault(actuations[1], bent(robot, held))


@pytest.mark.parametrize("mirror", [(-1, 1, 1), (1, -1, 1), (1, 1, -1), (-1, -1, 1)], ids=["x", "y", "z", "turned"])
def test_a_mirrored_cloud_is_found(mirror):
    lopsided = np.where(np.arange(9) % 3 == 0, 4500.0, 800.0) + np.where(np.arange(9) < 3, 400.0, 0.0)
    faults = [JUDGE.fault(a, captured(a) * np.array(mirror)) for a in (lopsided, np.sort(ACTUATIONS[2]))]
    assert any("mirrored" in fault for fault in faults) and all(faults), faults


def test_a_chamber_that_the_shape_does_not_show_is_not_blamed():
    """The bust lies under the chest: with that full, 5 kPa in it move the skin by half a millimetre."""
    robot = load_robot("mannequin")
    judge, surface = ShapeJudge(robot), load_pipeline(robot, 60 * 60)
    commanded = np.array([9.6e3, 1.4e3, 2.7e3, 4.8e3, 9.8e3, 5.3e3, 9.97e3, 0.1e3, 8.9e3])

    def said_without(name: str) -> str:
        held = commanded.copy()
        held[robot.actuation_names.index(name)] = 0.0
        return judge.fault(commanded, surface.points(held) / MM_PER_M)

    assert said_without("bust") == ""
    assert "back is at 9800 Pa" in said_without("back")
