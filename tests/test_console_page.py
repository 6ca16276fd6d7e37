"""The operator's page in a browser on a running stack: what is seen and done there, and what the robot is commanded."""

import os
import re
import time
from pathlib import Path

import numpy as np
import pytest
from console_browser import browsers, tab
from console_pages import address_of, forget_program, hill, page_of

from softform_interfaces.msg import DriverState
from softform_studies.console.graphics_picks import compare_picks

pytestmark = pytest.mark.timeout(600)


def grab(one, u=0.5, v=0.5):
    """Press the surface at (u, v); returns where that is on the screen and in the robot's frame."""
    place = one.place("sheet", u, v)
    x, y = one.screen(place)
    one.page.mouse.move(x, y)
    one.page.mouse.down()
    return (x, y), np.array(place)


@pytest.fixture(scope="module")
def browser(stack):
    """Chromium that has drawn a point once: software GL compiles for that, and who stands still must not steer."""
    with browsers() as one:
        with tab(one) as first:
            first.open(address_of(stack))
            grab(first)
            first.page.mouse.up()
            first.wait("document.querySelector('.pins li') !== null", "a point")
            time.sleep(1.0)
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


def drag(one, observer, u=0.5, v=0.5, up=60):
    """Drag the surface's point upwards on the screen; returns where its target came to."""
    before = len(observer.targets)
    (x, y), place = grab(one, u, v)
    one.page.mouse.move(x, y - 5)
    one.page.mouse.move(x, y - up, steps=4)

    def target():
        at = observer.targets[-1].position[-1]
        return np.array([at.x, at.y, at.z])

    observer.wait_for(
        lambda: len(observer.targets) > before and np.abs(np.subtract(one.screen(target()), (x, y - up))).max() < 3.0,
        "a target under the mouse",
    )
    one.page.mouse.up()
    assert (observer.targets[-1].u[-1], observer.targets[-1].v[-1]) == pytest.approx((u, v), abs=0.05)
    assert target()[2] > place[2] + 0.005
    return target()


def test_a_point_that_is_picked_and_dragged_is_followed(opened, observer):
    wanted = drag(opened, observer)
    observer.wait_for(lambda: observer.servo and observer.servo[-1].converged, "a solution")
    observer.wait_for(
        lambda: observer.is_at(observer.targets[-1].u[0], observer.targets[-1].v[0], wanted), "the surface is there"
    )
    assert observer.commands[-1].source == "inverse_kinematics" and max(observer.commands[-1].value) > 500.0
    opened.wait("document.querySelector('.facts').innerText.includes('the points')", "the page says what it follows")


@pytest.mark.long
def test_two_points_are_followed_and_one_is_removed(opened, observer):
    drag(opened, observer)
    observer.wait_for(lambda: observer.servo and observer.servo[-1].converged, "a solution")
    drag(opened, observer, 0.3, 0.3, up=30)
    observer.wait_for(lambda: len(observer.targets[-1].position) == 2, "two points")
    opened.page.click("[aria-label='Remove point 1']")
    observer.wait_for(lambda: len(observer.targets[-1].position) == 1, "one point")
    assert observer.targets[-1].u[0] == pytest.approx(0.3, abs=0.05)


def test_the_space_bar_stops_whatever_has_the_focus(opened, observer):
    drag(opened, observer)
    observer.wait_for(lambda: observer.measured.max() > 500.0, "motion")
    opened.page.focus("input[type=range]")
    opened.page.keyboard.press("Space")
    begun = time.monotonic()
    observer.wait_for(lambda: observer.state == DriverState.FAULT, "the stop")
    assert time.monotonic() - begun < 1.0
    opened.wait("document.querySelector('#status b').innerText === 'Stopped'", "the page says stopped")
    assert all(observer.driver[-1].at_rest)
    observer.forget()
    time.sleep(1.0)
    assert not observer.targets and not observer.commands


@pytest.mark.long
def test_the_graphics_card_picks_what_a_tree_picks(opened, observer):
    """Paper 002, Sec. III-B: they agree within the footprint of a pick, rounding; `bench console` casts 10 000."""
    agreement = compare_picks(opened, "sheet", 1_000)
    assert agreement.rays == 1_000 and 200 < agreement.hits < 900
    assert agreement.footprint < 1e-6 and agreement.differ <= 1
    opened.page.evaluate("window.softformPicture.pickByGraphics(true)")
    (x, y), place = grab(opened, 0.3, 0.6)
    opened.page.mouse.up()
    opened.wait("document.querySelector('.pins li') !== null", "a point")
    observer.wait_for(lambda: observer.targets, "its target")
    target = observer.targets[-1]
    assert np.abs([target.u[0] - 0.3, target.v[0] - 0.6]).max() < 0.005


def test_a_slider_moves_its_actuator(opened, observer):
    slider = opened.page.locator(".actuator input").nth(4)
    slider.focus()
    opened.page.keyboard.press("ArrowRight")
    observer.wait_for(lambda: observer.commands, "commands")
    for _ in range(50):
        opened.page.keyboard.press("ArrowRight", delay=10)
    value = float(slider.input_value())
    assert value > 1000.0
    observer.wait_for(lambda: abs(observer.commands[-1].value[4] - value) < 1.0, "the command that the slider shows")
    assert observer.commands[-1].source == "console"
    observer.wait_for(lambda: abs(observer.measured[4] - value) < 300.0, "the chamber follows")
    assert np.abs(np.delete(observer.measured, 4)).max() < 600.0


@pytest.mark.long
def test_a_target_file_is_laid_over_the_robot_and_reached(opened, observer, tmp_path):
    file = hill(observer, tmp_path / "target.ply")
    opened.page.set_input_files("input[type=file]", file)
    opened.page.get_by_role("button", name="m", exact=True).click()
    opened.wait("/lies over|0 % of/.test(document.body.innerText)", "the share that lies beside")
    assert not observer.commands
    opened.page.get_by_role("button", name="Reach it").click()
    observer.wait_for(lambda: observer.commands, "commands")
    opened.wait("document.querySelector('.panel').innerText.includes('Predicted error')", "the result")
    assert observer.commands[-1].source == "inverse_kinematics"
    observer.wait_for(lambda: np.abs(observer.measured - observer.commands[-1].value).max() < 200.0, "the values")
    observer.wait_for(lambda: observer.is_at(0.5, 0.5, (0.0, 0.0, 0.02), 0.004), "the target")


@pytest.mark.long
def test_a_program_is_loaded_run_and_ended_its_running_block_marked(opened, observer, tmp_path):
    file, low = tmp_path / "mine.yaml", [700.0] * 9
    file.write_text(f"robot: membrane\ntitle: Low\nblocks:\n  - move_to_values: {low}\n  - wait: 60\n  - verify\n")
    forget_program(opened)
    opened.page.set_input_files("[aria-label=Program] input[type=file]", file)
    opened.wait("document.querySelectorAll('.blocks li').length === 3", "its blocks")
    assert not observer.commands
    opened.page.get_by_role("button", name="Run", exact=True).click()
    opened.wait("document.querySelector('.blocks [aria-current]')?.innerText.startsWith('2 wait 60 s')", "the wait")
    assert list(observer.commands[-1].value) == low and np.abs(observer.measured - low).max() < 200.0
    opened.page.get_by_role("button", name="End the program").click()
    opened.wait("document.body.innerText.includes('Ended in block 2 (line 5)')", "where it ended")
    assert observer.state == DriverState.RUNNING
    opened.page.get_by_role("button", name="wait", exact=True).click()
    opened.wait("document.querySelectorAll('.blocks li').length === 4", "a block that was added")
    with opened.page.expect_download() as saved:
        opened.page.get_by_role("button", name="Save", exact=True).click()
    assert Path(saved.value.path()).read_text() == file.read_text() + "  - wait: 1\n"
    opened.page.get_by_text("As text").click()
    opened.page.get_by_label("The program as text").fill("robot: membrane\nblocks:\n  - wait: long\n")
    opened.page.keyboard.press("Tab")
    opened.wait("document.body.innerText.includes('line 3, block 1, wait')", "what is wrong")
    assert opened.page.get_by_role("button", name="Run", exact=True).is_disabled()


def test_a_page_that_is_closed_while_it_steers_ends_the_motion(browser, observer, address):
    with tab(browser) as one:
        one.open(address)
        drag(one, observer)
        observer.wait_for(lambda: observer.measured.max() > 500.0, "motion")
    observer.wait_for(lambda: observer.state == DriverState.SAFE, "made safe", 10.0)


@pytest.mark.long
def test_a_page_that_freezes_while_it_steers_ends_the_motion(opened, observer):
    drag(opened, observer)
    observer.wait_for(lambda: observer.measured.max() > 500.0, "motion")
    begun = time.monotonic()
    opened.page.evaluate("(() => { const end = performance.now() + 2500; while (performance.now() < end); })()")
    observer.wait_for(lambda: observer.state != DriverState.RUNNING, "the end of the motion", 3.0)
    assert time.monotonic() - begun < 5.0


@pytest.mark.long
def test_another_page_watches_and_can_stop(opened, observer, address):
    with page_of(address) as steering:
        steering.operate()
        steering.drag(("sheet", 0.5, 0.5, (0.0, 0.0, 0.03)))
        observer.wait_for(lambda: observer.measured.max() > 500.0, "motion")
        opened.wait("document.body.innerText.includes('Somebody else steers')", "the page knows")
        observer.forget()
        grab(opened, 0.3, 0.3)
        opened.page.mouse.up()
        observer.wait_for(lambda: len(observer.targets) > 10, "targets that go on")
        assert all(len(one.position) == 1 and one.u[0] == 0.5 for one in observer.targets)
        opened.page.click("#stop")
        observer.wait_for(lambda: observer.state == DriverState.FAULT, "the stop")
        assert steering.wait_for("stopped", lambda one: one["stage"] == "confirmed")
    opened.wait("document.querySelector('#status b').innerText === 'Stopped'", "the page says stopped")


def test_the_stop_needs_no_script(browser, observer, address):
    with page_of(address) as steering:
        steering.operate()
        steering.drag(("sheet", 0.5, 0.5, (0.0, 0.0, 0.03)))
        observer.wait_for(lambda: observer.measured.max() > 500.0, "motion")
        with tab(browser, java_script_enabled=False) as one:
            one.page.goto(address + "/")
            one.page.click("#stop")
            assert re.search("Stopped: every actuator was measured at rest", one.page.inner_text("body"))
    assert observer.state == DriverState.FAULT


@pytest.mark.long
def test_a_request_to_another_host_would_be_noticed(browser, address, observer):
    with tab(browser) as one:
        one.open(address)
        assert one.outside == set()
        one.page.evaluate("fetch('https://cdn.example.org/x').catch(() => 0)")
        one.wait("window.refused.length > 0", "the refusal")
        assert any("cdn.example.org" in url for url in one.outside)
