"""What the driver tells of turns is what nodes read of it."""

import numpy as np
import pytest
from builtin_interfaces.msg import Time

from softform_core.errors import SoftformError
from softform_core.forward.history import HistoryKeeper
from softform_core.robots import load_robot
from softform_ros.histories import history_from_message, history_message


@pytest.mark.parametrize(("name", "told"), [("membrane", 9), ("tendon_rod", 3 + 4)])
def test_turns_of_bends_and_of_tendons_come_as_they_were_sent(name: str, told: int) -> None:
    robot, random = load_robot(name), np.random.default_rng(0)
    keeper = HistoryKeeper(robot)
    for second in range(12):
        keeper.note(robot.actuators_of(random.uniform(robot.actuation_min, robot.actuation_max)), 10.0 * second)
    message = history_message(keeper.history, robot, Time())
    assert len(message.name) == len(message.turns) == told and min(message.turns) > 0
    assert history_from_message(message, robot) == keeper.history
    message.name = robot.actuation_names[:-1]
    with pytest.raises(SoftformError, match="none of"):
        history_from_message(message, robot)
