"""Motions planned and carried out on the running stack: clear in reality, or not if the simulation planned them."""

import time

import numpy as np
import pytest
from sensor_msgs.msg import PointCloud2

from softform_client.client import ActuatorPath, ShapeClient
from softform_core.paths import models_dir
from softform_core.robots import load_robot
from softform_rig.reality import load_reality
from softform_ros.background_node import BackgroundNode
from softform_ros.conversions import points_from_cloud, seconds_from_stamp
from softform_ros.qos import TRUE_SURFACE
from softform_studies.planned_motion.scene import scene_of

STACK = {"sim_to_real": str(models_dir() / "membrane" / "rig_default")}
CLEARANCE = 0.001


@pytest.fixture(scope="module")
def scene():
    robot = load_robot("membrane")
    return scene_of(robot, load_reality("default", robot), 0)


@pytest.fixture(scope="module")
def surfaces(stack):
    """True surfaces of the rig as they come: when they were taken, and their points."""
    seen = []
    with BackgroundNode("watcher", "/softform") as node:
        node.create_subscription(
            PointCloud2,
            "rig/true_surface",
            lambda cloud: seen.append((seconds_from_stamp(cloud.header.stamp), points_from_cloud(cloud))),
            TRUE_SURFACE,
        )
        yield seen


@pytest.fixture(scope="module")
def robot(stack):
    with ShapeClient(timeout=30.0) as client:
        yield client


def wait_for_surface_of_now(surfaces):
    now, deadline = time.time(), time.monotonic() + 30.0
    while not surfaces or surfaces[-1][0] < now:
        assert time.monotonic() < deadline, "the rig shows no surface"
        time.sleep(0.05)


@pytest.mark.long
def test_a_planned_motion_keeps_clear_in_reality(robot, scene, surfaces):
    plan = robot.plan(scene.goal, scene.stick.mesh(), clearance=CLEARANCE)
    assert plan.solve.used_sim_to_real and min(plan.clearances) > CLEARANCE
    followed = robot.follow(ActuatorPath(np.reshape(plan.actuators.value, (-1, 9))), times=plan.times)
    assert np.allclose(followed.actuators.value[-9:], plan.actuators.value[-9:])
    wait_for_surface_of_now(surfaces)
    nearest = [float(scene.stick.distances(points).min()) for _, points in surfaces]
    assert nearest[-1] == pytest.approx(plan.clearances[-1], abs=0.002)
    assert min(nearest) > CLEARANCE


@pytest.mark.long
def test_the_motion_of_the_simulated_surface_alone_collides(robot, scene, surfaces):
    plan = robot.plan(scene.goal, scene.stick.mesh(), clearance=CLEARANCE, without_sim_to_real=True)
    assert not plan.solve.used_sim_to_real and min(plan.clearances) > CLEARANCE
    robot.follow(ActuatorPath(np.reshape(plan.actuators.value, (-1, 9))), times=plan.times)
    wait_for_surface_of_now(surfaces)
    assert scene.stick.distances(surfaces[-1][1]).min() < 0.0
