"""Robots that were never led by their simulation before: on a stack their tips are reached, followed and streamed."""

from itertools import repeat

import numpy as np
import pytest

from softform_client.client import Mode, PointPath, ShapeClient
from softform_core.forward.robot_models import ModelRequest, TipModels, open_models
from softform_core.robots import TIP, load_robot
from softform_core.shapes.features import FeaturePoints
from softform_core.units import MM_PER_M
from softform_interfaces.msg import ServoState

pytestmark = [pytest.mark.timeout(600), pytest.mark.long]


@pytest.mark.parametrize("name", ["tendon_rod", "planar_fingers"])
def test_a_tip_is_led_by_the_simulation(name, own_stacks):
    robot = load_robot(name)
    models = open_models("fem", ModelRequest(robot, 1000))
    assert isinstance(models, TipModels)
    shares = np.array([[0.3, 0.2, 0.25], [0.35, 0.25, 0.2], [0.4, 0.2, 0.3]])
    places = np.zeros((3, 3))
    places[:, : models.tip.dimensions] = models.tip.tip(shares * robot.actuation_max) / MM_PER_M
    own_stacks.launched_with({"robot": name, "model": "fem"})
    with ShapeClient() as client:
        wanted = [FeaturePoints.of(np.zeros((1, 2)), place[None], output=[TIP]) for place in places]
        result = client.reach(features=wanted[0], mode=Mode.PLAN_AND_MOVE, max_time=60.0)
        assert result.solve.mean_error < 2e-4 and not result.solve.used_sim_to_real
        assert max(client.follow(PointPath(places)).errors) < 2e-4
        states = [state for state, _ in zip(client.stream(repeat(wanted[0]), 10.0), range(80), strict=False)]
        assert states[-1].state == ServoState.TRACKING and states[-1].mean_error < 1e-3
