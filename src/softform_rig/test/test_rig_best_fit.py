"""The closest shape that the true body can take, against a shape that it has taken."""

import numpy as np
import pytest

from softform_core.bodies.membrane.simulator import RealMembrane
from softform_core.errors import SoftformError
from softform_core.robots import Robot, load_robot
from softform_core.shapes.shape import Shape
from softform_rig.best_fit import BestFit, Fit, find_best_fit
from softform_rig.board_emulation import PressureSensors
from softform_rig.live_body import LiveBody
from softform_rig.reality import Reality

pytestmark = pytest.mark.slow

REALITY = Reality(
    name="coarse", title="", body=RealMembrane(cells=12), pressure_sensors=PressureSensors(gain=0.9, offset=300.0)
)


@pytest.fixture(scope="module")
def robot() -> Robot:
    return load_robot("membrane")


def raised(robot: Robot, height: float) -> tuple[Shape, np.ndarray]:
    """A shape of the true body at an actuation, raised."""
    actuation = robot.actuation_min + np.linspace(0.3, 0.7, 9) * (robot.actuation_max - robot.actuation_min)
    live = LiveBody(robot, REALITY)
    return Shape.from_mesh(live.commanded_shape(actuation) + [0.0, 0.0, height], live.faces), actuation


def test_a_shape_that_the_body_takes_is_found_from_every_start(robot: Robot) -> None:
    target, actuation = raised(robot, 0.0)
    told = []
    found = find_best_fit(robot, REALITY, target, 3, on_start=lambda number, mean: told.append((number, mean)))
    assert found.mean_mm < 1e-2 and found.agreeing == 3
    assert [number for number, _ in told] == [1, 2, 3] and [mean for _, mean in told] == found.of_starts_mm.tolist()
    np.testing.assert_allclose(found.actuation, actuation, rtol=0.0, atol=5.0)


def test_the_mean_is_led_on_below_the_least_squares_and_stays_in_the_range(robot: Robot) -> None:
    found = find_best_fit(robot, REALITY, raised(robot, 0.003)[0], 1)
    assert 0.5 < found.mean_mm < found.of_starts_mm[0] - 0.01
    assert (found.actuation >= robot.actuation_min).all() and (found.actuation <= robot.actuation_max).all()


def test_the_fit_is_none_the_worse_than_what_was_measured(robot: Robot) -> None:
    """A search whose one start leads astray goes on from the commands that were tried, and says that starts differ."""
    target, actuation = raised(robot, 0.0)
    alone = find_best_fit(robot, REALITY, target, 1)
    tried = Fit(0.5, 2.0, actuation + 20.0)
    found = find_best_fit(robot, REALITY, target, 1, tried=[tried])
    assert found.mean_mm <= min(alone.mean_mm, tried.mean_mm) + 1e-9 and found.of_starts_mm == pytest.approx(
        alone.of_starts_mm
    )
    lucky = Fit(1e-4, 1e-3, actuation)  # a scan with holes may see less than a whole look
    assert find_best_fit(robot, REALITY, target, 1, tried=[lucky]).mean_mm <= lucky.mean_mm


def test_starts_that_disagree_are_told() -> None:
    assert BestFit(1.0, 2.0, np.zeros(9), np.array([1.0, 1.005]), 0.0).agreement == "all 2 starts agree"
    led_on = BestFit(0.96, 2.0, np.zeros(9), np.array([1.0, 1.005]), 0.0).agreement
    assert led_on == "all 2 starts agree (1.00 mm by squares, led on to the least mean)"
    apart = BestFit(1.0, 2.0, np.zeros(9), np.array([7.7, 1.0, 1.005, 9.2]), 0.0)
    assert apart.agreement == "2 of 4 starts agree, they led to 1.00 … 9.20 mm" and apart.agreeing == 2


def test_a_target_beside_the_robot_is_rejected(robot: Robot) -> None:
    target, _ = raised(robot, 0.0)
    with pytest.raises(SoftformError, match="over the target"):
        find_best_fit(robot, REALITY, Shape.from_mesh(target.points + [1.0, 0.0, 0.0], target.faces), 1)
