"""Robots led by their simulation on a stack: tips reached, followed, streamed; a motion planned; a body of a file."""

from itertools import repeat

import numpy as np
import pytest

from softform_client.client import ActuatorPath, Mode, PointPath, ShapeClient
from softform_core.forward.robot_models import ModelRequest, TipModels, open_models
from softform_core.paths import models_of
from softform_core.robots import TIP, load_robot
from softform_core.shapes.features import FeaturePoints
from softform_core.shapes.shape import Shape
from softform_core.simulation.simulated_body import equilibrium_points
from softform_core.units import MM_PER_M
from softform_interfaces.msg import ServoState
from softform_rig.live_body import LiveBody
from softform_rig.reality import load_reality
from softform_studies.planned_motion.scene import scene_of

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


def test_a_motion_is_planned_by_the_simulation_with_sim_to_real_and_carried_out(own_stacks):
    robot, learned = load_robot("membrane"), str(models_of("membrane") / "rig_default")
    reality = load_reality("default", robot)
    scene = scene_of(robot, reality, 0)
    own_stacks.launched_with({"robot": "membrane", "model": "fem", "sim_to_real": learned})
    with ShapeClient(timeout=300.0) as client:
        plan = client.plan(scene.goal, scene.stick.mesh(), clearance=0.001, max_time=240.0)
        assert plan.solve.used_sim_to_real and min(plan.clearances) > 0.001
        way = np.reshape(plan.actuators.value, (-1, len(robot.actuators)))
        for chosen in np.linspace(0, len(way) - 1, 4).astype(int):
            actuators, told = way[chosen], plan.clearances[chosen]
            truth = LiveBody(robot, reality).commanded_shape(actuators)
            assert scene.stick.distances(truth).min() > told - 0.002
        assert scene.stick.distances(truth).min() == pytest.approx(told, abs=0.002)
        followed = client.follow(ActuatorPath(way), times=plan.times)
        assert np.allclose(followed.actuators.value[-len(robot.actuators) :], way[-1])


def test_a_body_of_a_file_is_launched_and_takes_a_shape(own_stacks):
    pytest.importorskip("gmsh")
    robot = load_robot("mesh_finger")
    body = robot.body.simulator()
    wanted = equilibrium_points(body, np.array([[24e3, 6e3]]))[0, : body.faces.max() + 1]
    own_stacks.launched_with({"robot": "mesh_finger", "model": "fem"})
    with ShapeClient(timeout=60.0) as client:
        result = client.reach(Shape.from_mesh(wanted, body.faces), Mode.PLAN_MOVE_AND_VERIFY, max_time=120.0)
        assert result.solve.mean_error < 3e-4
        assert result.actuators.value == pytest.approx([24e3, 6e3], abs=1.5e3)
        assert result.measured.valid and result.measured.mean_error < 3e-3  # of a reality unlike it
