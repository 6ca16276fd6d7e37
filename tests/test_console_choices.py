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

pytestmark = [pytest.mark.timeout(600), pytest.mark.long]

NODES = ("shape_predictor", "inverse_kinematics", "motion_planner")


@pytest.fixture
def opened(observer, address, request, tmp_path):
    with browsers() as browser, tab(browser) as one:
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


def select(opened, name):
    """The choice whose name stands above it."""
    return opened.page.locator("label.field", has=opened.page.locator(f"span:text-is('{name}')")).locator("select")


def test_another_kind_of_model_is_chosen_for_all_nodes_and_back(opened, observer, address):
    with page_of(address) as watching:
        for kind in ("fem", "learned"):
            opened.wait("document.querySelector('.facts + label select')?.value !== ''", "the kind in use")
            select(opened, "Model").select_option(kind)
            watching.wait_for("state", lambda state, kind=kind: state["robots"][0]["model"] == kind, 180.0)
            assert kinds(observer) == {kind}
    assert not observer.commands, "a choice moves nothing"


def test_a_person_answers_on_the_page_what_moved_and_ends_it(opened, observer):
    opened.page.get_by_label("Jobs").get_by_role("button", name="Jobs").click()
    opened.page.get_by_label("What is shown").select_option("commission")
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
