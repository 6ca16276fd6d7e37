"""The live body of a reality that depends on its path is led along it, as the actuators go."""

import numpy as np
import pytest

from softform_core.robots import load_robot
from softform_rig.live_body import LiveBody
from softform_rig.reality import load_reality

ROBOT = load_robot("tendon_robot")


@pytest.fixture
def body() -> LiveBody:
    return LiveBody(ROBOT, load_reality("printed", ROBOT))


def pulled(*pulls: float) -> np.ndarray:
    values = 1e-3 * np.array(pulls)
    return np.where(values > 0.0, values, ROBOT.safe)


def test_it_comes_to_another_shape_by_another_way_and_creeps_while_it_stands(body):
    home, goal = pulled(0, 0, 0, 0), pulled(6, 0, 0, 0)
    body.shape(home, 3.0)
    direct = body.shape(goal, 3.0)[0].copy()
    assert body.failure is None
    crept = body.shape(goal, 30.0)[0].copy()
    body.shape(pulled(12, 0, 0, 0), 3.0)
    over = body.shape(goal, 3.0)[0].copy()
    assert np.linalg.norm(over - direct) > 5e-3
    assert 1e-5 < np.linalg.norm(crept - direct) < 1e-2


def test_motors_feel_the_tension_that_friction_holds(body):
    bent = body.shape(pulled(6, 0, 0, 0), 3.0)[0].copy()
    up = body.tendon_loads()
    body.shape(pulled(13, 0, 0, 0), 3.0)
    further = body.shape(pulled(6, 0, 0, 0), 3.0)[0].copy()
    down = body.tendon_loads()
    assert up is not None and down is not None
    assert up.tension[0] > down.tension[0] > 0.0 and further[0] > bent[0]  # bent further by less tension
    assert (up.stretch[1:] < 0.0).all()


def test_it_stays_where_it_was_if_it_is_pulled_far_out_of_its_range(body):
    before = body.shape(pulled(9, 0, 0, 0), 3.0).copy()
    np.testing.assert_array_equal(body.shape(np.full(4, 0.2), 3.0), before)
    assert body.failure is not None
    body.shape(pulled(9, 0, 0, 0), 3.0)
    assert body.failure is None
