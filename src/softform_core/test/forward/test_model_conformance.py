"""The checks of `forward.conformance`, on each model that ships, and on such as are wrong."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.forward import conformance
from softform_core.forward.conformance import CHECKS, Check
from softform_core.forward.forward_model import ForwardModel, SplineModel
from softform_core.forward.live_pipeline import learned
from softform_core.forward.memory import Memory, PrandtlIshlinskii, State
from softform_core.forward.robot_models import (
    ModelRequest,
    SurfaceModels,
    TipModels,
    open_models,
    open_surface_models,
)
from softform_core.forward.simulated_models import fem
from softform_core.robots import load_robot


class Bulge(SplineModel):
    """A sheet whose middle rises with the first actuation, and leans with the others."""

    def predict_control(self, actuation: Array) -> tuple[Array, Any]:
        side = np.linspace(-1.0, 1.0, 30)
        x, y = np.meshgrid(side, side, indexing="ij")
        flat = np.stack([160.0 * x, 160.0 * y, np.zeros_like(x)], axis=-1).reshape(1, -1, 3)
        return flat + np.einsum("ckx,nk->ncx", self._modes, actuation), actuation

    @property
    def _modes(self) -> Array:
        side = np.linspace(-1.0, 1.0, 30)
        x, y = (each.ravel() for each in np.meshgrid(side, side, indexing="ij"))
        dome = (1.0 - x**2) * (1.0 - y**2)
        modes = np.zeros((900, 9, 3))
        for place in range(9):
            modes[:, place, 2] = 4e-3 * dome * np.cos(place * x)
        return modes

    def control_jacobian(self, predicted: Array) -> Array:
        return np.repeat(self._modes.transpose(0, 2, 1)[None], len(predicted), axis=0)


@pytest.fixture(scope="module", params=["learned", "fem", "compressible fem", "own", "tip", "tip fem"])
def served(request: pytest.FixtureRequest) -> tuple[ForwardModel, Array, Array]:
    name = {"compressible fem": "compressible", "tip": "three_chamber", "tip fem": "tendon_rod"}
    robot = load_robot(name.get(request.param, "membrane"))
    offer = fem if "fem" in request.param else learned
    models = offer(ModelRequest(robot, 400))
    model: ForwardModel
    if request.param == "own":
        model = Bulge(robot.patches, robot.patches.samples(400), robot.actuation_names)
    elif isinstance(models, TipModels):
        model = models.current
    else:
        assert isinstance(models, SurfaceModels)
        model = models.simulated
    return model, robot.actuation_min, robot.actuation_max


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_models_that_ship_do_what_every_model_must(served: tuple[ForwardModel, Array, Array], check: Check) -> None:
    check(*served)


class Wrong(Bulge):
    calls = 0
    remembers: Memory = Memory()

    @property
    def memory(self) -> Memory:
        return self.remembers


def wrong(**attributes: Any) -> ForwardModel:
    robot = load_robot("membrane")
    kind = type("Wrong", (Wrong,), attributes)
    return kind(robot.patches, robot.patches.samples(100), robot.actuation_names)


class Stiff(Memory):
    def effective(self, state: State, commanded: Array, seconds: float = 10.0) -> Array:
        return 0.5 * commanded


def drifting(self: Wrong, actuation: Array) -> tuple[Array, Any]:
    type(self).calls += 1
    control, predicted = Bulge.predict_control(self, actuation)
    return control + self.calls, predicted


@pytest.mark.parametrize(
    ("attributes", "check"),
    [
        ({"control_jacobian": lambda self, given: 1.1 * Bulge.control_jacobian(self, given)},
         conformance.derivatives_are_those_of_the_points),
        ({"predict_control": drifting}, conformance.evaluation_is_pure),
        ({"remembers": Stiff()}, conformance.memory_gives_what_is_wanted),
        ({"inputs": property(lambda self: ("c1",) * 9)}, conformance.inputs_are_named),
        ({"predict_control": lambda self, at: (np.full((len(at), 900, 3), np.nan), at)},
         conformance.points_are_finite),
        ({"normals": lambda self, at: np.ones((100, 3))}, conformance.surfaces_agree_wherever_they_are_asked),
    ],
)  # fmt: skip
def test_each_check_finds_what_is_wrong(attributes: dict[str, Any], check: Check) -> None:
    robot = load_robot("membrane")
    with pytest.raises(AssertionError):
        check(wrong(**attributes), robot.actuation_min, robot.actuation_max)


def test_a_play_conforms() -> None:
    robot = load_robot("membrane")
    model = wrong(remembers=PrandtlIshlinskii.play(np.full(9, 100.0)))
    conformance.memory_gives_what_is_wanted(model, robot.actuation_min, robot.actuation_max)


def test_models_are_found_by_name_and_refused_with_the_reason() -> None:
    robot, rod = load_robot("membrane"), load_robot("tendon_rod")
    assert isinstance(open_models("learned", ModelRequest(robot, 100)), SurfaceModels)
    fems = [open_models("fem", ModelRequest(one, 100)) for one in (rod, load_robot("three_chamber"))]
    assert [isinstance(one, TipModels) and (one.has_line, one.bones is not None) for one in fems] == [
        (True, True),
        (False, True),
    ]
    refused: list[tuple[Callable[[], object], str]] = [
        (lambda: open_models("fme", ModelRequest(robot, 100)), "fme"),
        (lambda: open_surface_models("fem", ModelRequest(rod, 100)), "no surface"),
        (lambda: fem(ModelRequest(rod, 100, sim_to_real="/tmp/x")), "not its simulator"),
    ]
    for attempt, reason in refused:
        with pytest.raises(SoftformError, match=reason):
            attempt()
