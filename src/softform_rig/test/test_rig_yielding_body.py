"""What motors feel between two looks at a body that yields to them: to first order what its next shape tells."""

import numpy as np
import pytest

from softform_core.robots import load_robot
from softform_rig.live_body import LiveBody
from softform_rig.reality import load_reality

pytestmark = pytest.mark.slow

ROBOT = load_robot("helix")
TAUT = np.array([12.0, 8.0, 10.0, 6.0, 9.0, 7.0, 8.0, 7.0, 10.0]) * 1e-3


@pytest.mark.parametrize(("reality", "within"), [("default", 0.15), ("bowden", 0.4)])
def test_tensions_rise_as_the_arm_yields(reality, within):
    body = LiveBody(ROBOT, load_reality(reality, ROBOT))
    pulls = TAUT.copy()
    for share in (0.5, 1.0):
        body.shape(share * TAUT)
    pulls = TAUT + np.array([2.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 2.0]) * 1e-3
    foretold = body.tendon_loads()
    as_if_stiff = foretold._replace(compliance=None).tension_at(pulls)
    body.shape(pulls)
    assert body.failure is None
    told, true = foretold.tension_at(pulls), body.tendon_loads().tension
    rise = true - foretold.tension
    moved = np.array([0, 4, 8])
    assert (rise[moved] > 0.05).all()
    np.testing.assert_allclose((told - foretold.tension)[moved], rise[moved], rtol=within)
    assert (as_if_stiff[moved] > true[moved] + 3.0 * rise[moved]).all()


def test_slack_cables_are_taken_up_and_hold_no_motor_back():
    body = LiveBody(ROBOT, load_reality("default", ROBOT))
    body.shape(ROBOT.safe)
    foretold = body.tendon_loads()
    assert foretold.tension.max() < 0.1
    told = foretold.tension_at(TAUT)
    body.shape(TAUT)
    true = body.tendon_loads().tension
    np.testing.assert_allclose(told, true, atol=0.2 * true.max())
    assert foretold._replace(compliance=None).tension_at(TAUT).min() > 5.0 * true.max()
