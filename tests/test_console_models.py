"""The kind of model is chosen on the page: predicted, streamed and reached by it, and a goal may name another."""

import time

import numpy as np
import pytest
from console_pages import hill, page_of

from softform_client.client import GoalFailedError, ShapeClient
from softform_core.forward.simulated_models import SimulatedSurface
from softform_core.robots import load_robot
from softform_core.shapes.read import read_shape
from softform_core.units import MM_PER_M
from softform_interfaces.msg import DriverState

pytestmark = pytest.mark.timeout(300)
ROBOT = load_robot("membrane")
WANTED = (0.0, 0.0, 0.03)


@pytest.fixture
def page(observer, address):
    with page_of(address) as one:
        one.wait_for("state", lambda state: state["robots"][0]["model"] == "learned")
        one.operate()
        yield one


def use(page, model):
    said = len(page.all("notice"))
    page.send(type="use_model", model=model)
    return page.wait_for("notice", lambda one: one["about"] == "use_model", since=said, patience=90.0)


def test_another_kind_predicts_follows_and_reaches_until_it_is_changed_back(page, observer, tmp_path):
    page.drag(("sheet", 0.5, 0.5, WANTED))
    observer.wait_for(lambda: observer.servo and observer.servo[-1].converged, "a solution")
    assert set(page.robot["models"]) >= {"learned", "fem"}
    observer.wait_for(lambda: observer.meshes and observer.meshes[-1].scalar == "sigma", "the uncertainty is known")

    told = use(page, "fem")
    assert told["level"] == "info" and "'fem' is in use" in told["text"], told
    page.wait_for("state", lambda state: state["robots"][0]["model"] == "fem")
    observer.meshes.clear()
    observer.wait_for(lambda: observer.meshes and not observer.meshes[-1].scalar, "of a simulator none is known")

    surface = SimulatedSurface(ROBOT, np.array([[0.5, 0.5]]))

    def miss():
        point = surface.points(np.array(observer.commands[-1].value))[0] / MM_PER_M
        return float(np.linalg.norm(point - WANTED))

    observer.wait_for(lambda: miss() < 5e-4, "the simulator's surface is where it is wanted", 60.0)
    assert observer.state == DriverState.RUNNING
    page.send(type="release")
    observer.wait_for(lambda: observer.state == DriverState.SAFE, "made safe")

    shape = read_shape(hill(observer, tmp_path / "target.ply"), "m")
    with ShapeClient() as client:
        assert not client.reach(shape, max_time=60.0).solve.used_sim_to_real
        assert client.reach(shape, model="learned").solve.used_sim_to_real
        with pytest.raises(GoalFailedError, match="There is no model of kind 'odd'"):
            client.reach(shape, model="odd")
        assert page.robot["model"] == "fem"
        assert "'learned' is in use" in use(page, "learned")["text"]
        assert client.reach(shape).solve.used_sim_to_real
        assert not client.reach(shape, model="fem", max_time=60.0).solve.used_sim_to_real


def test_a_kind_that_there_is_not_changes_nothing(page, observer):
    told = use(page, "odd")
    assert told["level"] == "error" and "There is no model of kind 'odd'" in told["text"]
    time.sleep(3.0)
    assert page.robot["model"] == "learned" and not observer.commands


def test_who_watches_chooses_nothing(observer, address):
    with page_of(address) as watcher:
        watcher.send(type="use_model", model="fem")
        assert "watches" in watcher.wait_for("notice", lambda one: one["about"] == "use_model")["text"]
