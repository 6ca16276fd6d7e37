"""Obstacles and motions of the operator's page on a running stack: placed, planned, looked at in time, then run."""

import os
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from console_browser import browsers, tab
from console_pages import forget_program, page_of

from softform_client.actuator_values import values_to_message
from softform_interfaces.msg import DriverState
from softform_interfaces.srv import PredictShape
from softform_ros.conversions import points_from_cloud
from softform_ros.service_calls import call_service

pytestmark = [pytest.mark.timeout(600), pytest.mark.long]

RADIUS, CLEARANCE = 0.02, 0.003


@pytest.fixture(scope="module")
def browser():
    with browsers() as one:
        yield one


@pytest.fixture
def opened(browser, observer, address, request, tmp_path):
    with tab(browser) as one:
        one.open(address)
        one.wait("document.querySelector('#status').dataset.tone !== 'unknown'", "a known state")
        yield one
        folder = Path(os.environ.get("SOFTFORM_SCREENSHOTS", tmp_path))
        one.page.screenshot(path=folder / f"{request.node.name}.png")
        assert one.outside == set() and one.complaints == []


@pytest.fixture
def watching(address):
    """Another page, which sees what the first one does."""
    with page_of(address) as page:
        yield page


def obstacle(watching):
    """The only obstacle as the server has it: centre and edges, m."""
    (one,) = watching.robot["obstacles"] or [None]
    return one and (np.array(one["centre"]), np.array(one["edges"]))


def place_ball(opened, watching, observer, centre):
    """Place a ball by numbers."""
    opened.page.get_by_role("group", name="Add an obstacle").get_by_role("button", name="ball").click()
    observer.wait_for(lambda: obstacle(watching), "a ball")
    for label, value in zip(
        ("x, mm", "y, mm", "z, mm", "along x", "along y", "along z"), [*centre, *[2.0 * RADIUS] * 3], strict=True
    ):
        opened.page.get_by_label("Motion").get_by_label(label, exact=True).fill(f"{1e3 * value:g}")
    observer.wait_for(
        lambda: np.allclose(np.concatenate(obstacle(watching)), [*centre, *[2.0 * RADIUS] * 3], atol=1e-6),
        "the ball where it was put by numbers",
    )


def drag_ball(opened, watching, observer, by):
    """Drag the ball by px."""
    x, y = opened.screen(obstacle(watching)[0])
    opened.page.mouse.move(x, y)
    opened.page.mouse.down()
    opened.page.mouse.move(x + by[0], y + by[1], steps=4)
    opened.page.mouse.up()
    observer.wait_for(
        lambda: np.abs(np.subtract(opened.screen(obstacle(watching)[0]), (x + by[0], y + by[1]))).max() < 3.0,
        "the ball under the mouse",
    )


def look_at(opened, share):
    """Move the slider of time to a share of its way; returns that time, s."""
    return float(
        opened.page.get_by_label("Time of the motion that is looked at").evaluate(
            """(slider, share) => {
              const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set
              set.call(slider, share * slider.max)
              slider.dispatchEvent(new Event('input', { bubbles: true }))
              return slider.value
            }""",
            share,
        )
    )


def predicted(observer, values):
    """The grid of points that the stack predicts at values, m."""
    asked = PredictShape.Request(actuators=values_to_message(values))
    points = points_from_cloud(
        call_service(observer.node, "shape_predictor", PredictShape, "predict_shape", asked, 10.0).cloud
    )
    side = round(len(points) ** 0.5)
    return points.reshape(side, side, 3)


def values_at(motion, moment):
    return np.array([np.interp(moment, motion["times"], each) for each in np.array(motion["actuators"]).T])


def is_foreseen(opened, observer, motion, moment):
    """Whether the page shows a point of the sheet where the stack predicts it for a moment of a motion."""
    grid = predicted(observer, values_at(motion, moment))
    row, column = len(grid) // 2, len(grid) // 3
    u, v = row / (len(grid) - 1), column / (len(grid) - 1)
    shown = opened.page.evaluate(f"window.softformPicture.place('sheet', {u}, {v}, true)")
    return shown is not None and np.linalg.norm(np.array(shown) - grid[row, column]) < 1e-4


def test_a_motion_past_a_ball_is_planned_looked_at_in_time_and_run(opened, observer, watching):
    place_ball(opened, watching, observer, (0.0, 0.0, 0.06))
    drag_ball(opened, watching, observer, (15, -20))
    slider = opened.page.locator(".actuator input").nth(4)
    slider.focus()

    def is_raised():
        if float(slider.input_value()) < 1500.0:  # also again, where the page stood still on a busy computer
            opened.page.keyboard.press("ArrowRight")
        return observer.measured[4] > 1000.0

    observer.wait_for(is_raised, "a raised middle")
    value = float(slider.input_value())
    observer.wait_for(lambda: abs(observer.commands[-1].value[4] - value) < 1.0, "the command that the slider shows")
    opened.page.get_by_role("button", name="Keep this pose").click()
    opened.page.get_by_role("button", name="Let go of the robot").click()
    observer.wait_for(lambda: observer.state == DriverState.SAFE and all(observer.driver[-1].at_rest), "rest")
    time.sleep(0.5)
    observer.forget()

    told = len(watching.all("motion")), len(watching.all("motion_state"))
    opened.page.get_by_label("clear by, mm").fill(f"{1e3 * CLEARANCE:g}")
    opened.page.get_by_role("button", name="Plan past them").click()
    motion = watching.wait_for("motion", patience=60.0, since=told[0])
    said = watching.wait_for("motion_state", lambda one: one["stage"] == "planned", since=told[1])
    opened.wait(f"document.body.innerText.includes('{said['text']}')", "what was planned")
    goal = np.array(motion["actuators"][-1])
    assert goal[4] == pytest.approx(value, abs=1.0) and np.delete(goal, 4).max() < 300.0
    for share in (0.5, 0.9):
        moment = look_at(opened, share)
        assert moment == pytest.approx(share * motion["times"][-1], rel=0.02)
        observer.wait_for(partial(is_foreseen, opened, observer, motion, moment), "the shape of that moment")
    assert not observer.commands and observer.state == DriverState.SAFE, "looking moves nothing"

    opened.page.get_by_role("button", name="Run it").click()
    watching.wait_for("motion_state", lambda one: one["stage"] == "reached", 60.0, told[1])
    assert {one.source for one in observer.commands} == {"inverse_kinematics"}
    observer.wait_for(lambda: abs(observer.measured[4] - value) < 200.0, "the pose that was kept")
    centre, _ = obstacle(watching)
    points = np.concatenate([np.frombuffer(mesh.vertices, np.float32).reshape(-1, 3) for mesh in observer.meshes])
    assert np.linalg.norm(points - centre, axis=1).min() > RADIUS + CLEARANCE - 1e-3
    assert obstacle(watching) is not None
    opened.page.get_by_label("Remove obstacle 1").click()
    observer.wait_for(lambda: watching.robot["obstacles"] == [], "no obstacle")


def test_a_drawn_path_is_planned_followed_and_stopped(opened, observer, watching):
    place = opened.place("sheet", 0.5, 0.5)
    x, y = opened.screen(place)
    told = len(watching.all("motion")), len(watching.all("motion_state"))
    opened.page.get_by_role("button", name="Draw a path").click()
    opened.page.mouse.move(x, y)
    opened.page.mouse.down()
    opened.page.mouse.move(x, y - 40, steps=8)
    opened.page.mouse.move(x + 4, y - 40, steps=4)
    opened.page.mouse.up()
    motion = watching.wait_for("motion", since=told[0])
    watching.wait_for("motion_state", lambda one: one["stage"] == "planned", since=told[1])
    assert not observer.commands and not observer.targets, "planning moves nothing"
    path = np.array(motion["path"])
    assert np.linalg.norm(path[0] - place) < 0.003 and path[:, 2].max() > place[2] + 0.005
    assert np.abs(np.subtract(opened.screen(path[-1]), (x + 4, y - 40))).max() < 3.0
    moment = look_at(opened, 0.5)
    observer.wait_for(lambda: is_foreseen(opened, observer, motion, moment), "the shape at half of the way")
    assert not observer.commands

    opened.page.get_by_role("button", name="Run it").click()
    watching.wait_for("motion_state", lambda one: one["stage"] == "reached", 60.0, told[1])
    assert {one.source for one in observer.commands} == {"inverse_kinematics"}
    assert np.allclose(observer.commands[-1].value, motion["actuators"][-1], atol=1.0)
    off = motion["errors"][-1] + 0.003  # a membrane does not go sideways: how far it is off was planned
    observer.wait_for(lambda: observer.is_at(0.5, 0.5, path[-1], off), "the end of the path")
    assert np.linalg.norm(observer.surface(0.5, 0.5) - place) > 0.005

    told = len(watching.all("motion_state"))
    opened.page.get_by_role("button", name="Run it").click()
    watching.wait_for("motion_state", lambda one: one["stage"] == "moving" and one["waypoint"] > 3, 60.0, told)
    opened.page.keyboard.press("Space")
    observer.wait_for(lambda: observer.state == DriverState.FAULT, "the stop")
    assert watching.wait_for("motion_state", lambda one: one["stage"] == "failed", since=told)
    observer.wait_for(lambda: all(observer.driver[-1].at_rest), "a robot measured at rest")


def test_a_page_that_is_loaded_anew_shows_program_and_motion(opened, observer, watching, tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text(f"robot: membrane\ntitle: Low\nblocks:\n  - move_to_values: {[700.0] * 9}\n  - wait: 1\n")
    forget_program(opened)
    opened.page.set_input_files("[aria-label=Program] input[type=file]", file)
    opened.wait("document.querySelectorAll('.blocks li').length === 2", "its blocks")
    motions = watching.all("motion")
    opened.page.reload()
    opened.wait("document.querySelectorAll('.blocks li').length === 2", "the program again")
    assert opened.page.get_by_label("The program as text").input_value() == file.read_text()
    assert len(motions) == 0 or opened.page.get_by_role("button", name="Run it").is_visible()
    assert not observer.commands
