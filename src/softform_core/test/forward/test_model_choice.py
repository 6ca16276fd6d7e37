"""Models of which one is in use: a goal keeps its own, a kind is opened once, what cannot be used changes nothing."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from softform_core.errors import SoftformError
from softform_core.forward.forward_model import SplineModel
from softform_core.forward.model_choice import ChosenSurface
from softform_core.forward.robot_models import FixedSurface, ModelRequest, SurfaceModels, kind_of_models
from softform_core.robots import load_robot

ROBOT = load_robot("membrane")


class Flat(SplineModel):
    """A sheet at a height, whatever it is asked."""

    def __init__(self, height: float, points: int = 100) -> None:
        super().__init__(ROBOT.patches, ROBOT.patches.samples(points), ROBOT.actuation_names)
        self.height = height

    def predict_control(self, actuation):
        return np.full((len(actuation), 900, 3), self.height), actuation

    def control_jacobian(self, predicted):
        return np.zeros((len(predicted), 900, 3, 9))


class Trained(FixedSurface):
    """Models that are trained anew when `height` is set."""

    def refresh(self) -> str | None:
        self.models = FixedSurface(Flat(7.0), "learned").models
        return "trained anew"


def heights(models: SurfaceModels) -> tuple[float, float]:
    return (
        float(models.current.points(ROBOT.actuation_min)[0, 2]),
        float(models.simulated.points(ROBOT.actuation_min)[0, 2]),
    )


@pytest.fixture
def opened():
    return []


@pytest.fixture
def chosen(opened):
    def open_kind(kind):
        opened.append(kind)
        if kind == "broken":
            raise SoftformError("It cannot be used.", "Choose another.")
        return FixedSurface(Flat(2.0, 400 if kind == "fine" else 100), kind)

    return ChosenSurface("learned", Trained(Flat(1.0), "learned"), open_kind)


def test_one_is_in_use_and_what_was_taken_before_stays_what_it_is(chosen, opened):
    before = chosen.of("")
    chosen.choose("fem")
    assert heights(chosen) == pytest.approx((2.0, 2.0)) and heights(before) == pytest.approx((1.0, 1.0))
    assert chosen.description()["model"] == chosen.kind == "fem"
    chosen.choose("learned")
    chosen.choose("fem")
    assert opened == ["fem"]


def test_a_goal_may_name_a_kind_that_is_not_in_use(chosen):
    assert heights(chosen.of("fem")) == pytest.approx((2.0, 2.0))
    assert chosen.kind == "learned" and heights(chosen) == pytest.approx((1.0, 1.0))


@pytest.mark.parametrize("kind", ["broken", "fine"])
def test_what_cannot_be_used_changes_nothing(chosen, kind):
    with pytest.raises(SoftformError):
        chosen.choose(kind)
    assert chosen.kind == "learned" and heights(chosen) == pytest.approx((1.0, 1.0))


def test_while_a_kind_is_opened_the_others_are_there_and_it_is_opened_once():
    begun, goes_on, opened = threading.Event(), threading.Event(), []

    def open_kind(kind):
        opened.append(kind)
        begun.set()
        assert kind != "slow" or goes_on.wait(10.0)
        return FixedSurface(Flat(2.0), kind)

    chosen = ChosenSurface("learned", Trained(Flat(1.0), "learned"), open_kind)
    with ThreadPoolExecutor(4) as threads:
        try:
            slow = [threads.submit(chosen.of, "slow") for _ in range(2)]
            assert begun.wait(10.0)
            others = threads.submit(lambda: [heights(chosen.of(kind))[0] for kind in ("", "learned", "fem")])
            assert others.result(10.0) == pytest.approx([1.0, 1.0, 2.0])
            assert not any(one.done() for one in slow)
        finally:
            goes_on.set()
        assert slow[0].result(10.0) is slow[1].result(10.0) and opened.count("slow") == 1


def test_what_is_trained_anew_comes_into_use_while_it_is_chosen(chosen):
    chosen.choose("fem")
    assert chosen.refresh() is None and heights(chosen)[0] == pytest.approx(2.0)
    chosen.choose("learned")
    assert chosen.refresh() == "trained anew" and heights(chosen)[0] == pytest.approx(7.0)
    assert heights(chosen.of(""))[0] == pytest.approx(7.0)


def test_without_a_choice_another_kind_is_refused():
    models = FixedSurface(Flat(1.0), "fem")
    assert models.of("") is models
    with pytest.raises(SoftformError, match="No other kind"):
        models.of("learned")


@pytest.mark.parametrize(
    ("kind", "robot", "meant"),
    [
        ("auto", "membrane", "learned"),
        ("auto", "helix", "fem"),
        ("learned", "helix", "learned"),
        ("fem", "membrane", "fem"),
    ],
)
def test_auto_is_the_learned_model_where_there_is_one_else_the_simulator(kind, robot, meant):
    assert kind_of_models(kind, ModelRequest(load_robot(robot), 100)) == meant


def test_auto_of_a_folder_without_a_model_is_the_simulator(tmp_path):
    assert kind_of_models("auto", ModelRequest(ROBOT, 100, tmp_path)) == "fem"
