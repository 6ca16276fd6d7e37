"""What is chosen on the operator's page on a running stack: the kind of model, and answers to what a job asks."""

import os
from pathlib import Path

import numpy as np
import pytest
from console_browser import browsers, tab
from console_pages import page_of

from softform_interfaces.msg import DriverState
from softform_interfaces.srv import UseModel
from softform_ros.service_calls import call_service

pytestmark = pytest.mark.timeout(600)

NODES = ("shape_predictor", "inverse_kinematics", "motion_planner")


@pytest.fixture
def opened(observer, address, request, tmp_path):
    with browsers() as browser, tab(browser, viewport={"width": 1100, "height": 900}) as one:
        one.open(address)
        one.wait("document.querySelector('#status').dataset.tone !== 'unknown'", "a known state")
        yield one
        folder = Path(os.environ.get("SOFTFORM_SCREENSHOTS", tmp_path))
        one.page.screenshot(path=folder / f"{request.node.name}.png")
        assert one.outside == set() and one.complaints == []


def kinds(observer):
    """The kind of model that each node says that it uses."""
    return {
        call_service(observer.node, name, UseModel, f"{name}/use_model", UseModel.Request(), 10.0).model
        for name in NODES
    }


def choose(opened, watching, kind):
    opened.page.get_by_label("Model", exact=True).select_option(kind)
    watching.wait_for("state", lambda state: state["robots"][0]["model"] == kind, 180.0)


def test_a_point_is_followed_by_the_simulator_once_that_is_chosen(opened, observer, address):
    with page_of(address) as watching:
        choose(opened, watching, "fem")
        try:
            assert kinds(observer) == {"fem"}
            x, y = opened.screen(opened.place("sheet", 0.5, 0.5))
            opened.page.mouse.move(x, y)
            opened.page.mouse.down()
            opened.page.mouse.move(x, y - 5)
            opened.page.mouse.move(x, y - 40, steps=4)
            opened.page.mouse.up()
            observer.wait_for(lambda: observer.servo and observer.servo[-1].converged, "a solution")
            at = observer.targets[-1].position[0]
            point = observer.targets[-1].u[0], observer.targets[-1].v[0]
            observer.wait_for(lambda: observer.is_at(*point, (at.x, at.y, at.z), 0.003), "the simulated surface there")
            assert observer.commands[-1].source == "inverse_kinematics" and max(observer.commands[-1].value) > 500.0
        finally:
            choose(opened, watching, "learned")
        assert kinds(observer) == {"learned"}


def test_a_person_answers_on_the_page_what_moved_and_ends_it(opened, observer):
    opened.page.get_by_label("Jobs").get_by_role("button", name="Jobs").click()
    opened.page.get_by_label("What is shown").select_option("commission")
    opened.page.get_by_label("by", exact=True).select_option("person")
    opened.page.get_by_role("button", name="Start").click()
    question = opened.page.get_by_role("form", name="Question of the job")
    question.get_by_text("1 of 9").wait_for(timeout=60_000)
    assert not observer.commands
    question.get_by_role("button", name="Answer").click()
    observer.wait_for(lambda: observer.commands and max(observer.commands[-1].value) > 500.0, "a chamber that fills")
    moved = int(np.argmax(observer.commands[-1].value))
    assert np.count_nonzero(np.array(observer.commands[-1].value) > 100.0) == 1
    question.get_by_text("Which chamber moved?").wait_for(timeout=60_000)
    assert observer.measured.max() < 300.0, "it was vented before it is asked"
    question.get_by_role("button", name=f"c{moved + 1}", exact=True).click()
    question.get_by_text("2 of 9").wait_for(timeout=60_000)
    question.get_by_label("Answer", exact=True).fill("stop")
    question.get_by_role("button", name="Answer").click()
    opened.wait("/failed|cancelled/.test(document.querySelector('.jobs li').innerText)", "the end")
    observer.wait_for(lambda: observer.state == DriverState.SAFE and all(observer.driver[-1].at_rest), "rest")
