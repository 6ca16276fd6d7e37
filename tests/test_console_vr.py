"""The operator's page in an emulated headset on a running stack: two hands pick and pull, the robot is commanded."""

import os
import time
from pathlib import Path

import numpy as np
import pytest
from console_browser import browsers, tab
from console_pages import address_of

from softform_interfaces.msg import DriverState

pytestmark = [pytest.mark.timeout(600), pytest.mark.long]

IWER = Path(__file__).parents[1] / "src/softform_console/web/node_modules/iwer/build/iwer.min.js"
HEADSET = """;(() => {
  const device = new IWER.XRDevice(IWER.metaQuest3, { stereoEnabled: true })
  device.installRuntime({ forceInstall: true })
  device.ipd = 0.063
  device.position.set(0, 1.5, 0.1)
  window.headset = device
})()"""

ORIGIN = np.array([0.0, 0.95, -0.6])
"""Where the page puts the robot before a headset, m; its y is up."""

EYES = {"left": np.array([-0.15, 1.4, -0.1]), "right": np.array([0.15, 1.4, -0.1])}
"""Where the hands are at first, m."""


def to_world(place):
    x, y, z = place
    return ORIGIN + [x, z, -y]


def to_robot(direction):
    x, y, z = direction
    return np.array([x, -z, y])


def orientation(forward):
    """Quaternion (x, y, z, w) of a controller whose -z looks forward."""
    z = -np.asarray(forward) / np.linalg.norm(forward)
    x = np.cross([0.0, 1.0, 0.0], z)
    x /= np.linalg.norm(x)
    m = np.column_stack([x, np.cross(z, x), z])
    w = 0.5 * np.sqrt(max(1e-12, 1.0 + np.trace(m)))
    return [*(np.array([m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]]) / (4.0 * w)), w]


def aim(one, hand, at, forward):
    numbers = [float(value) for value in (*at, *orientation(forward))]
    one.page.evaluate(
        """([hand, x, y, z, ...turn]) => {
          headset.controllers[hand].position.set(x, y, z)
          headset.controllers[hand].quaternion.set(...turn)
        }""",
        [hand, *numbers],
    )


def press(one, hand, button, value=1):
    one.page.evaluate(f"headset.controllers.{hand}.updateButtonValue('{button}', {value})")


def drawn(one, pictures):
    """Wait for pictures that begin from now on: a headset's input counts in those, which may take a second each."""
    for _ in range(pictures):
        one.page.evaluate("new Promise(requestAnimationFrame)")


def targets(observer):
    return [np.array([at.x, at.y, at.z]) for at in observer.targets[-1].position] if observer.targets else []


def nearest(places, place):
    return min(places, key=lambda one: np.linalg.norm(one - place))


@pytest.fixture
def headset(stack, observer, tmp_path):
    if not IWER.is_file():
        pytest.skip("npm ci was not run in src/softform_console/web")
    with browsers() as browser, tab(browser) as one:
        one.page.add_init_script(IWER.read_text(encoding="utf-8") + HEADSET)
        one.open(address_of(stack))
        one.page.click("button:text-is('VR')")
        time.sleep(3.0)  # the session begins, and both controllers are there
        drawn(one, 5)
        yield one
        folder = Path(os.environ.get("SOFTFORM_SCREENSHOTS", tmp_path))
        one.page.screenshot(path=folder / "headset.png")
        assert one.outside == set() and one.complaints == []


def test_two_hands_pull_two_points_and_stop_the_robot(headset, observer):
    picked = {"left": headset.place("sheet", 0.35, 0.5), "right": headset.place("sheet", 0.65, 0.5)}
    forward = {hand: to_world(picked[hand]) - EYES[hand] for hand in EYES}
    for hand in EYES:
        aim(headset, hand, EYES[hand], forward[hand])
    drawn(headset, 3)
    for hand in EYES:
        press(headset, hand, "trigger")
    observer.wait_for(lambda: len(targets(observer)) == 2, "two points")
    begun = {hand: nearest(targets(observer), np.array(picked[hand])) for hand in EYES}
    for hand in EYES:
        assert begun[hand] == pytest.approx(picked[hand], abs=0.004), "the robot moves a little until it is picked"

    moves = {"left": np.array([0.0, 0.012, 0.0]), "right": np.array([0.01, 0.02, 0.0])}
    for step in (0.25, 0.5, 0.75, 1.0):
        for hand in EYES:
            aim(headset, hand, EYES[hand] + step * moves[hand], forward[hand])
        drawn(headset, 2)
    wanted = {hand: begun[hand] + to_robot(moves[hand]) for hand in EYES}

    def are_there():
        places = targets(observer)
        return len(places) == 2 and all(np.linalg.norm(nearest(places, w) - w) < 1e-4 for w in wanted.values())

    observer.wait_for(are_there, "targets that moved as the hands did")
    observer.wait_for(lambda: observer.state == DriverState.RUNNING and observer.commands, "commands")
    observer.wait_for(lambda: max(observer.commands[-1].value) > 200.0, "pressure")

    headset.page.evaluate("headset.controllers.left.updateAxes('thumbstick', 0, -1)")
    time.sleep(0.4)
    drawn(headset, 2)
    headset.page.evaluate("headset.controllers.left.updateAxes('thumbstick', 0, 0)")
    drawn(headset, 2)
    time.sleep(0.3)
    of_left = max(targets(observer), key=lambda one: np.linalg.norm(one - wanted["right"]))
    pushed = of_left - wanted["left"]
    along = to_robot(forward["left"] / np.linalg.norm(forward["left"]))
    assert pushed @ along > 0.005
    assert np.linalg.norm(pushed - (pushed @ along) * along) < 5e-4

    press(headset, "left", "squeeze")
    observer.wait_for(lambda: len(targets(observer)) == 1, "one point")
    assert targets(observer)[0] == pytest.approx(wanted["right"], abs=1e-4)

    press(headset, "right", "trigger", 0)
    board = ORIGIN + [-0.5 * 0.32 - 0.18, 0.05, 0.0]
    aim(headset, "right", EYES["right"], board - EYES["right"])
    drawn(headset, 3)
    press(headset, "right", "trigger")
    observer.wait_for(lambda: observer.state == DriverState.FAULT, "a stop")
    observer.wait_for(lambda: all(observer.driver[-1].at_rest), "a robot measured at rest")
