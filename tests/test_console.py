"""The console on a running stack: what pages ask for, and what the robot is commanded."""

import http.client
import os
import signal
import time
from urllib.parse import urlsplit

import numpy as np
import pytest
from console_pages import hill, page_of, uploaded

from softform_client.client import ActuatorPath, ShapeClient
from softform_interfaces.msg import DriverState
from softform_ros.service_calls import call_driver

MIDDLE = ("sheet", 0.5, 0.5, (0.0, 0.0, 0.03))


@pytest.fixture
def page(observer, address):
    with page_of(address) as one:
        one.wait_for("state", lambda state: state["robots"][0]["driver"]["state"] == "safe")
        one.operate()
        yield one


def vented(observer):
    """Wait until the driver has made the robot safe, and its chambers are empty."""
    observer.wait_for(lambda: observer.state == DriverState.SAFE, "made safe")
    observer.wait_for(lambda: observer.values and np.abs(observer.measured).max() < 400.0, "vented")


def test_a_dragged_point_is_where_it_is_dragged_to(page, observer):
    page.drag(MIDDLE)
    observer.wait_for(lambda: observer.servo and observer.servo[-1].converged, "a solution")
    observer.wait_for(lambda: observer.is_at(0.5, 0.5, MIDDLE[3]), "the surface is there")
    assert observer.commands[-1].source == "inverse_kinematics" and max(observer.commands[-1].value) > 1000.0
    state = page.wait_for("state", lambda state: state["robots"][0]["steering"] == "points")["robots"][0]
    assert state["points"][0]["target"] == [0.0, 0.0, 0.03] and state["driver"]["holder"] == "inverse_kinematics"
    observer.wait_for(
        lambda: (
            page.robot["commanded"] == pytest.approx(observer.commands[-1].value, abs=1.0)
            and page.robot["measured"] == pytest.approx(observer.measured, abs=200.0)
        ),
        "the same values on the page",
    )


def test_several_points_are_followed_and_removed(page, observer):
    corner = ("sheet", 0.3, 0.3, (-0.03, -0.03, 0.01))
    page.drag(MIDDLE, corner)
    observer.wait_for(lambda: observer.targets and len(observer.targets[-1].position) == 2, "two points")
    observer.wait_for(lambda: observer.servo and observer.servo[-1].converged, "a solution")
    both = np.array(observer.commands[-1].value)
    page.drag(MIDDLE)
    observer.wait_for(lambda: len(observer.targets[-1].position) == 1, "one point")
    observer.wait_for(lambda: np.abs(observer.commands[-1].value - both).max() > 200.0, "other commands")


def test_a_point_out_of_reach_is_followed_as_near_as_it_goes(page, observer):
    page.drag(("sheet", 0.5, 0.5, (0.0, 0.0, 0.2)))
    observer.wait_for(lambda: observer.commands and max(observer.commands[-1].value) > 4500.0, "a full chamber")
    assert observer.wait_for(lambda: observer.servo, "the servo")[-1].mean_error > 0.1


def test_without_optimisation_the_robot_holds(page, observer):
    page.drag(MIDDLE)
    observer.wait_for(lambda: observer.servo and observer.servo[-1].converged, "a solution")
    held = np.array(observer.commands[-1].value)
    page.drag(("sheet", 0.5, 0.5, (0.0, 0.0, 0.01)), optimise=False)
    page.wait_for("state", lambda state: state["robots"][0]["steering"] == "held")
    time.sleep(1.0)
    observer.forget()
    observer.wait_for(lambda: len(observer.commands) > 10, "repeated commands")
    assert np.abs(observer.commands[-1].value - held).max() < 1.0 and not observer.targets


def test_a_page_that_falls_silent_ends_its_motion(page, observer):
    page.drag(MIDDLE)
    observer.wait_for(lambda: observer.values and observer.measured.max() > 1000.0, "motion")
    page.beats.clear()
    begun = time.monotonic()
    observer.wait_for(lambda: observer.state != DriverState.RUNNING, "the end of the motion")
    assert time.monotonic() - begun < 2.0
    vented(observer)
    state = page.wait_for("state", lambda state: state["operator"] == "none")
    assert state["robots"][0]["steering"] == "none" and "silent" in page.all("notice")[-1]["text"]
    page.drag(MIDDLE)
    assert "watches" in page.wait_for("notice", lambda notice: notice["about"] == "points")["text"]


def test_a_page_that_is_closed_ends_its_motion(observer, address):
    with page_of(address) as one:
        one.operate()
        one.drag(MIDDLE)
        observer.wait_for(lambda: observer.values and observer.measured.max() > 1000.0, "motion")
    begun = time.monotonic()
    observer.wait_for(lambda: observer.state != DriverState.RUNNING, "the end of the motion")
    assert time.monotonic() - begun < 1.5
    vented(observer)


def test_sliders_command_within_the_limits_and_their_page_is_their_dead_man(page, observer):
    values = [1000.0 + 100.0 * i for i in range(9)]
    page.send(type="actuators", epoch=page.epoch, values=values)
    observer.wait_for(lambda: observer.commands, "commands")
    observer.wait_for(lambda: np.abs(observer.measured - values).max() < 300.0, "values")
    assert observer.commands[-1].source == "console" and list(observer.commands[-1].value) == values
    page.send(type="actuators", epoch=page.epoch, values=[1e6] * 9)
    page.wait_for("notice", lambda notice: notice["about"] == "actuators")
    assert list(observer.commands[-1].value) == values
    page.beats.clear()
    observer.wait_for(lambda: observer.state != DriverState.RUNNING, "the end of the motion")
    vented(observer)


def test_points_and_sliders_take_the_robot_from_one_another(page, observer):
    page.drag(MIDDLE)
    observer.wait_for(lambda: observer.driver[-1].holder == "inverse_kinematics", "the servo's lease")
    page.send(type="actuators", epoch=page.epoch, values=[800.0] * 9)
    observer.wait_for(lambda: observer.driver[-1].holder == "console", "the console's lease")
    observer.wait_for(lambda: np.abs(observer.measured - 800.0).max() < 300.0, "values")
    page.drag(MIDDLE)
    observer.wait_for(lambda: observer.driver[-1].holder == "inverse_kinematics", "the servo's lease")
    observer.wait_for(lambda: observer.servo and observer.servo[-1].converged, "a solution")
    page.send(type="release")
    vented(observer)
    assert page.robot["steering"] == "none"


def test_anybody_stops_and_nothing_is_resumed(page, observer, address):
    page.drag(MIDDLE)
    observer.wait_for(lambda: observer.values and observer.measured.max() > 1000.0, "motion")
    epoch = page.epoch
    with page_of(address) as watcher:
        watcher.send(type="stop")
        assert watcher.wait_for("stopped", lambda one: one["stage"] == "confirmed")["seconds"] < 8.0
    state = page.wait_for("state", lambda state: state["robots"][0]["driver"]["all_at_rest"])["robots"][0]
    assert state["steering"] == "none" and state["driver"]["stopped"] and state["driver"]["state"] == "fault"
    page.drag(MIDDLE, epoch=epoch)
    assert "stopped" in page.wait_for("notice", lambda notice: notice["about"] == "points")["text"]
    page.send(type="reset", epoch=page.epoch)
    observer.wait_for(lambda: observer.state == DriverState.SAFE, "the reset")
    observer.forget()
    time.sleep(1.0)
    assert not observer.targets and np.abs(observer.measured).max() < 400.0
    page.wait_for("state", lambda state: state["robots"][0]["driver"]["state"] == "safe")
    page.drag(MIDDLE)
    observer.wait_for(lambda: observer.measured.max() > 1000.0, "motion after the reset")


def test_a_stop_from_elsewhere_ends_the_steering(page, observer):
    page.drag(MIDDLE)
    observer.wait_for(lambda: observer.values and observer.measured.max() > 1000.0, "motion")
    assert call_driver(observer.node, "stop", 20.0).success
    page.wait_for("state", lambda state: state["robots"][0]["steering"] == "none")
    assert call_driver(observer.node, "reset", 20.0).success
    observer.forget()
    time.sleep(1.0)
    assert not observer.targets


def test_the_form_stops(page, observer, address):
    page.drag(MIDDLE)
    observer.wait_for(lambda: observer.values and observer.measured.max() > 1000.0, "motion")
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=20.0)
    connection.request("POST", "/stop", headers={"Origin": address})
    answer = connection.getresponse()
    assert answer.status == 200 and b"measured at rest" in answer.read()
    assert observer.state == DriverState.FAULT and all(observer.driver[-1].at_rest)


def test_a_target_is_previewed_and_reached(page, observer, address, tmp_path):
    told = uploaded(address, hill(observer, tmp_path / "target.ply"))
    assert told["vertices"] == 1024
    page.send(type="preview", target=told["id"], pose="fixed")
    assert page.wait_for("previewed")["beside"] == pytest.approx(0.0, abs=0.02)
    page.send(type="reach", epoch=page.epoch, target=told["id"], pose="fixed", mode="plan")
    planned = page.wait_for("goal_result")
    assert planned["error_code"] == 0, planned["text"]
    assert not observer.commands
    page.send(type="reach", epoch=page.epoch, target=told["id"], pose="fixed", mode="verify")
    reached = page.wait_for("goal_result", since=1, patience=60.0)
    assert reached["error_code"] == 0, reached["text"]
    assert reached["measured_mean_error"] < 0.005
    assert observer.commands[-1].value == pytest.approx(reached["actuators"], abs=1.0)
    assert {one["stage"] for one in page.all("goal")} >= {"moving"}


BALL = {"kind": "ball", "centre": [0.0, 0.0, 0.3], "edges": [0.04, 0.04, 0.04]}
PLACED = {**BALL, "centre": [0.05, 0.0, 0.1]}


def begin_motion(page, observer, address, tmp_path, how):
    """Have the robot moved by a goal for some seconds; returns how many states of motions were told before."""
    page.send(type="obstacles", obstacles=[BALL])
    told = len(page.all("motion")), len(page.all("motion_state"))  # of a test before, too
    if how == "reach":
        target = uploaded(address, hill(observer, tmp_path / "target.ply"))["id"]
        page.send(type="reach", epoch=page.epoch, target=target, pose="fixed", mode="verify")
        observer.wait_for(lambda: observer.commands, "the begin of the motion")
        return told[1]
    if how == "motion":
        page.send(type="plan_motion", values=[2500.0] * 9, clearance=0.002)
    else:
        places = np.linspace(observer.surface(0.5, 0.5), [0.0, 0.0, 0.03], 20).tolist()
        page.send(type="plan_path", output="sheet", u=0.5, v=0.5, places=places, seconds=10.0)
    motion = page.wait_for("motion", patience=60.0, since=told[0])

    def runs():  # also again: the planning may not have ended yet
        page.send(type="run_motion", epoch=page.epoch, motion=motion["id"])
        time.sleep(0.5)
        return page.all("motion_state")[-1]["stage"] == "moving"

    observer.wait_for(runs, "the begin of the motion")
    page.wait_for("motion_state", lambda one: one["stage"] == "moving" and one["waypoint"] >= 2, 60.0, told[1])
    return told[1]


@pytest.mark.parametrize("how", ["motion", "path", "reach"])
def test_an_obstacle_that_is_placed_while_the_robot_moves_ends_that_where_it_is(page, observer, address, tmp_path, how):
    observer.wait_for(lambda: observer.meshes, "the surface")
    told = begin_motion(page, observer, address, tmp_path, how)
    page.send(type="obstacles", obstacles=[BALL, PLACED])
    said = page.wait_for("notice", lambda one: one["about"] == "obstacles")
    assert "An obstacle was placed" in said["text"] and "holds where it is" in said["text"]
    if how == "reach":
        assert "cancelled" in page.wait_for("goal_result")["text"]
    else:
        said = page.wait_for("motion_state", lambda one: one["stage"] == "failed", since=told)["text"]
        assert "cancelled" in said and "waypoints were reached" in said
    page.wait_for("state", lambda state: state["robots"][0]["steering"] == "none")
    observer.forget()
    observer.wait_for(lambda: len(observer.commands) > 5 and observer.values, "what is held")
    held = np.array([one.value for one in observer.commands])
    assert np.ptp(held, axis=0).max() == 0.0 and observer.state == DriverState.RUNNING
    assert np.abs(observer.measured - held[-1]).max() < 300.0, "held where it is"
    assert how == "reach" or held.max() < 2000.0, "not where the motion ends"
    page.send(type="obstacles", obstacles=[])


STEERED = ("points", "held", "sliders", "goal")
LET_GO_SECONDS = 2.0
"""Beats are overdue after 1 s and looked for ten times a second; the rest is for a busy machine."""


def steer(page, observer, address, tmp_path, how):
    """Have the robot inflated by a page, one way or another."""
    if how == "sliders":
        page.send(type="actuators", epoch=page.epoch, values=[1500.0] * 9)
    elif how == "goal":
        told = uploaded(address, hill(observer, tmp_path / "target.ply"))
        page.send(type="reach", epoch=page.epoch, target=told["id"], pose="fixed", mode="move")
    else:
        page.drag(MIDDLE)
        observer.wait_for(lambda: observer.servo and observer.servo[-1].converged, "a solution")
    if how == "held":
        page.drag(MIDDLE, optimise=False)
        page.wait_for("state", lambda state: state["robots"][0]["steering"] == "held")
        time.sleep(1.0)  # the last target is stale by now
    observer.wait_for(lambda: observer.values and observer.measured.max() > 1000.0, "an inflated robot")
    assert observer.state == DriverState.RUNNING


def let_go(observer, begun):
    """Wait until the driver has been let go of in time, and its chambers are measured empty."""
    observer.wait_for(lambda: observer.state != DriverState.RUNNING, "the end of the motion")
    assert time.monotonic() - begun < LET_GO_SECONDS
    assert not observer.driver[-1].holder
    observer.wait_for(lambda: observer.state == DriverState.SAFE and all(observer.driver[-1].at_rest), "at rest", 10.0)
    observer.values.clear()
    observer.wait_for(lambda: observer.values and np.abs(observer.measured).max() < 400.0, "measured empty", 10.0)


@pytest.mark.parametrize("how", STEERED)
def test_a_console_that_is_frozen_loses_what_it_steers_and_does_not_go_on_when_it_wakes(
    page, observer, address, stack, tmp_path, how
):
    steer(page, observer, address, tmp_path, how)
    console = stack.process("console_node")
    begun = time.monotonic()
    console.send_signal(signal.SIGSTOP)
    try:
        let_go(observer, begun)
    finally:
        console.send_signal(signal.SIGCONT)
    observer.forget()
    page.wait_for("state", lambda state: state["robots"][0]["steering"] == "none")
    time.sleep(1.0)
    assert not observer.targets and observer.state == DriverState.SAFE
    assert observer.values and np.abs(observer.measured).max() < 400.0


@pytest.mark.parametrize("how", STEERED)
def test_a_page_that_is_cut_off_loses_what_it_steers(observer, address, tmp_path, how):
    with page_of(address) as page:
        page.wait_for("state", lambda state: state["robots"][0]["driver"]["state"] == "safe")
        page.operate()
        steer(page, observer, address, tmp_path, how)
        begun = time.monotonic()
        page.cut()
        let_go(observer, begun)


def test_a_console_that_steers_nothing_and_freezes_leaves_others_alone(observer, stack, page):
    """The goal of another client goes on, and what it reached is held."""
    wanted = [1200.0] * 9
    console = stack.process("console_node")
    with ShapeClient() as client:
        client.follow(ActuatorPath(np.array([wanted])))
        console.send_signal(signal.SIGSTOP)
        time.sleep(LET_GO_SECONDS)
        console.send_signal(signal.SIGCONT)
        assert observer.state == DriverState.RUNNING
        assert np.abs(observer.measured - wanted).max() < 300.0


def test_a_console_that_vanishes_loses_what_it_steers(page, observer, address, stack, tmp_path):
    steer(page, observer, address, tmp_path, "points")
    console = stack.process("console_node")
    begun = time.monotonic()
    os.kill(console.pid, signal.SIGKILL)
    let_go(observer, begun)
    observer.forget()
    observer.wait_for(lambda: len(observer.driver) > 3, "the driver goes on")
    assert observer.state == DriverState.SAFE
