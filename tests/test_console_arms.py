"""Two arms on the operator's page: targets are drawn, looked at and sent; who falls silent midway leaves held arms."""

import os
import signal
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from console_browser import browsers, tab
from console_pages import address_of, page_of
from held_arms import STILL, heard, ready

from softform_interfaces.msg import DriverState

STACK = {"launch": "shaping"}
SIDE = 0.05  # m, x of the sponge's side
MIDDLE = (SIDE, 0.0, 0.11)
MOVED = 0.01  # rad
BEND = np.array([0.0, 0.0, 0.008, -0.2, 0.0, 0.0, 0.0, 0.0, -0.008, 0.2, 0.0, 0.0])

__all__ = ["heard"]

pytestmark = [pytest.mark.long, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def browser(stack):
    """Chromium that has drawn all of it once: software GL compiles for that, and who stands still must not steer."""
    with browsers() as one:
        with tab(one) as first:
            open_page(first, address_of(stack))
            drag_middle(first, 20)
        yield one


@pytest.fixture
def opened(browser, heard, address, request, tmp_path):
    with tab(browser) as one:
        open_page(one, address)
        yield one
        folder = Path(os.environ.get("SOFTFORM_SCREENSHOTS", tmp_path))
        one.page.screenshot(path=folder / f"{request.node.name}.png")
        assert one.outside == set() and one.complaints == []


@pytest.fixture
def watching(address):
    """Another page, which sees what the first one does."""
    with page_of(address) as page:
        yield page


def open_page(one, address):
    one.open(address)
    one.wait("window.softformPicture.place('object', 0.02, 0.02) !== null", "the object")
    one.wait("document.querySelector('#status').dataset.tone !== 'unknown'", "a known state")


def drag_middle(one, by):
    """Drag the middle of the object's side to the right by px, and wait until a target is shown."""
    grid = [((row + 0.5) / 25, (column + 0.5) / 25) for row in range(25) for column in range(25)]
    found = {uv: place for uv in grid if (place := one.place("object", *uv))}
    uv = min(found, key=lambda uv: np.linalg.norm(np.subtract(found[uv], MIDDLE)))
    x, y = one.screen(found[uv])
    one.page.mouse.move(x, y)
    one.page.mouse.down()
    for step in range(1, 5):
        one.page.mouse.move(x + by * step / 4, y)
        time.sleep(0.05)
    one.page.mouse.up()
    one.wait("document.body.innerText.includes('Points stay off by')", "what the model makes of it")
    return uv


def test_a_point_is_dragged_and_the_true_object_comes_where_its_target_is(opened, watching, heard):
    begun = heard.measured.copy()
    told = len(watching.all("object_previewed"))
    uv = drag_middle(opened, 45)
    before = np.array(opened.place("object", *uv))
    time.sleep(3.0)  # the newest of what was asked for while it was dragged
    preview = watching.all("object_previewed")[-1]
    assert len(watching.all("object_previewed")) > told
    assert preview["off"] < 1e-3 and preview["stress"] > 1e4
    assert heard.driver.state == DriverState.HOLDING and np.array_equal(heard.measured, begun, equal_nan=True)

    told = len(watching.all("shaping"))
    opened.page.get_by_role("button", name="Shape it").click()
    ended = watching.wait_for("shaping", lambda one: one["stage"] in ("ended", "failed"), 240.0, told)
    assert ended["stage"] == "ended", ended
    truths = [one["true_rms"] for one in watching.all("shaping")[told:] if one["true_rms"] is not None]
    assert truths[0] > 0.002 and truths[-1] < min(0.002, 0.5 * truths[0]), truths
    opened.wait("document.body.innerText.includes('Off, in truth')", "how far off it is")
    here = np.array(opened.place("object", *uv))
    assert here[0] - before[0] > 0.005
    heard.wait_for_rest()
    assert watching.robot["driver"]["state"] == "holding" and not watching.all("notice")


def test_the_stop_latches_the_driver_midway_and_nothing_goes_on_after_the_reset(opened, watching, heard):
    opened.page.get_by_text("The right gripper").click()
    slider = opened.page.get_by_role("group", name="The right gripper").get_by_label("turn x, from")
    slider.focus()
    for _ in range(12):
        opened.page.keyboard.press("ArrowRight")
    opened.wait("document.body.innerText.includes('Stress there')", "what the model makes of it")
    time.sleep(2.0)
    assert watching.all("object_previewed")[-1]["poses"][9] == pytest.approx(float(slider.input_value()), abs=1e-6)
    with midway(heard):
        opened.page.get_by_role("button", name="Shape it").click()
    told = len(watching.all("shaping"))
    opened.page.keyboard.press("Space")
    heard.wait_until(lambda: heard.driver.state == DriverState.FAULT, "the driver to be stopped")
    heard.wait_for_rest()
    watching.wait_for("shaping", lambda one: one["stage"] == "failed", since=told)
    opened.wait("document.querySelector('#status').innerText.includes('Stopped')", "the page to say so")
    here = heard.truth[-1][1]
    opened.page.get_by_role("button", name="Allow motion again").click()
    heard.wait_until(lambda: heard.driver.state == DriverState.HOLDING, "the arms to be held")
    time.sleep(3.0)
    heard.wait_for_rest()
    assert np.abs(heard.truth[-1][1] - here).max() < STILL


@contextmanager
def midway(heard):
    """What is done in the block moves the arms; they are on their way after it."""
    begun = len(heard.truth)
    yield
    heard.wait_until(lambda: heard.driver.state == DriverState.RUNNING, "the arms to be driven", 60.0)
    heard.wait_until(
        lambda: len(heard.truth) > begun and np.abs(heard.truth[-1][1] - heard.truth[begun - 1][1]).max() > MOVED,
        "the arms to move",
        60.0,
    )


def send(page, heard):
    """Have a page send the arms away from where they are, and see them on their way."""
    page.operate()
    told = len(page.all("object_previewed"))
    turned = np.sign(0.5 - (heard.truth[-1][1][1] > 0.16)) if heard.truth else 1.0
    page.send(type="preview_object", poses=(turned * BEND).tolist())
    preview = page.wait_for("object_previewed", since=told)
    heard.wait_until(lambda: heard.truth, "the rig to tell where the arms are")
    with midway(heard):
        page.send(type="shape_object", epoch=page.epoch, preview=preview["id"])


def test_a_page_that_falls_silent_midway_ends_its_goal(heard, watching):
    send(watching, heard)
    watching.beats.clear()
    heard.wait_for_rest()
    failed = watching.wait_for("shaping", lambda one: one["stage"] == "failed")
    assert "cancelled" in failed["text"]
    ready(heard)


def test_a_console_that_is_frozen_midway_ends_its_goal_and_moves_nothing_when_it_thaws(stack, heard, watching):
    send(watching, heard)
    console = stack.process("console_node")
    console.suspend()
    try:
        heard.wait_for_rest(15.0)
        here = heard.truth[-1][1]
    finally:
        console.resume()
    time.sleep(3.0)
    heard.wait_for_rest()
    assert np.abs(heard.truth[-1][1] - here).max() < STILL
    assert "it has vanished. Shaping ends" in stack.log


@pytest.mark.ends_stack
def test_a_console_that_is_killed_midway_leaves_held_arms(stack, heard, watching):
    send(watching, heard)
    stack.process("console_node").send_signal(signal.SIGKILL)
    heard.wait_for_rest(15.0)
