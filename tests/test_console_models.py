"""The kind of model is chosen on the page: predicted, streamed and reached by it, and a goal may name another."""

import time

import numpy as np
import pytest
from console_pages import hill, page_of
from test_other_models import model_of, site  # noqa: F401 - `site` is a fixture: a package with a kind of model

from softform_client.client import GoalFailedError, ShapeClient
from softform_core.paths import models_of
from softform_core.shapes.read import read_shape
from softform_core.surface.patch_set import SHEET
from softform_core.units import MM_PER_M
from softform_interfaces.msg import DriverState

pytestmark = [pytest.mark.timeout(300), pytest.mark.long]
WANTED = (0.0, 0.0, 0.03)


@pytest.fixture(scope="module")
def stack(site, stacks):  # noqa: F811
    yield stacks.launched_with({"sim_to_real": str(models_of("membrane") / "rig_default")})
    stacks.close()


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


def followed(page, observer):
    """The command by which the servo has the middle where it is wanted."""
    page.drag(("sheet", 0.5, 0.5, WANTED))
    observer.wait_for(lambda: observer.servo and observer.servo[-1].converged, "a solution")
    observer.wait_for(lambda: observer.is_at(0.5, 0.5, WANTED), "the surface is there")
    values = np.array(observer.commands[-1].value)
    page.send(type="release")
    observer.wait_for(lambda: observer.state == DriverState.SAFE, "made safe")
    observer.forget()
    return values


def test_another_kind_predicts_follows_and_reaches_until_it_is_changed_back(page, observer, site, tmp_path):  # noqa: F811
    by_network = followed(page, observer)
    assert set(page.robot["models"]) >= {"learned", "fem", "bulges"}
    target = read_shape(hill(observer, tmp_path / "target.ply"), "m")
    assert observer.meshes[-1].scalar == "sigma"

    told = use(page, "bulges")
    assert told["level"] == "info" and "'bulges' is in use" in told["text"], told
    page.wait_for("state", lambda state: state["robots"][0]["model"] == "bulges")
    observer.meshes.clear()
    observer.wait_for(lambda: observer.meshes and not observer.meshes[-1].scalar, "of which no uncertainty is known")
    mesh = np.reshape(observer.meshes[-1].vertices, (-1, 3))
    flat = model_of(site).at(SHEET.samples(len(mesh))).points(observer.measured) / MM_PER_M
    assert np.abs(mesh - flat).max() < 1e-3
    by_bulges = followed(page, observer)
    assert np.abs(by_bulges - by_network).max() > 200.0

    with ShapeClient() as client:
        assert not client.reach(target, accept_unreachable=True).solve.used_sim_to_real
        learned = client.reach(target, model="learned")
        assert learned.solve.used_sim_to_real and learned.solve.mean_error < 2e-3
        with pytest.raises(GoalFailedError, match="There is no model of kind 'odd'"):
            client.reach(target, model="odd")
        assert page.robot["model"] == "bulges"
        assert "'learned' is in use" in use(page, "learned")["text"]
        assert client.reach(target).solve.used_sim_to_real
        simulated = client.reach(target, model="fem", max_time=60.0)
        assert not simulated.solve.used_sim_to_real and simulated.solve.mean_error < 2e-3
    assert page.robot["model"] == "learned"


def test_a_kind_that_there_is_not_changes_nothing(page, observer):
    told = use(page, "odd")
    assert told["level"] == "error" and "There is no model of kind 'odd'" in told["text"]
    time.sleep(3.0)
    assert page.robot["model"] == "learned" and not observer.commands


def test_who_watches_chooses_nothing(observer, address):
    with page_of(address) as watcher:
        watcher.send(type="use_model", model="fem")
        assert "watches" in watcher.wait_for("notice", lambda one: one["about"] == "use_model")["text"]
