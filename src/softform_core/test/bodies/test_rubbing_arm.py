"""Arms whose cables rub: the capstan's law, derivatives, and shapes that depend on the path."""

import numpy as np
import pytest
from small_arm import PULLS, problem, small

from softform_core.bodies.cable_arm import rubbing as rubbing_arm
from softform_core.bodies.cable_arm.rubbing import RubbingArm, RubbingState
from softform_core.bodies.cable_arm.simulator import RealCableArm
from softform_core.errors import SoftformError
from softform_core.simulation.newton import find_equilibria
from softform_core.simulation.simulated_body import PathDependentBody

MU, SHEATH = 0.1, 1.5


def rubbing(**friction: float) -> RubbingArm:
    body = small().real_simulator(RealCableArm.model_validate({"friction": {"drag": 0.0, "bends": 2} | friction}))
    assert isinstance(body, RubbingArm)
    return body


def led(body: RubbingArm, *stations: np.ndarray) -> tuple[np.ndarray, RubbingState]:
    unknowns, state = body.new(1)
    for pulls in stations:
        unknowns, state = body.advance(unknowns, pulls, state, 1.0)
    return unknowns, state


def tip(body: RubbingArm, unknowns: np.ndarray) -> np.ndarray:
    return body.points(unknowns)[0, -1]


@pytest.fixture(scope="module")
def rubbed() -> RubbingArm:
    return rubbing(coefficient=MU, sheath=SHEATH)


def test_an_arm_without_friction_is_that_of_the_learner_which_knows_of_none():
    body = rubbing(coefficient=0.0, run=1e-3)
    expected = problem().points(find_equilibria(problem(), PULLS).unknowns)[0, -1]
    unknowns, _ = led(body, 2.0 * PULLS, PULLS)
    assert tip(body, unknowns) == pytest.approx(expected, abs=4e-4)
    assert isinstance(body, PathDependentBody) and not isinstance(problem(), PathDependentBody)


def test_a_cable_that_slides_has_the_tensions_of_a_capstan_and_one_that_sticks_lies_within(rubbed):
    taut = [0, 3]
    for stations, slides in (((PULLS,), True), ((PULLS, 0.97 * PULLS), False)):
        unknowns, state = led(rubbed, *stations)
        tension = rubbed.chains(unknowns, rubbed.in_balance(unknowns, state)).tension[0, taut]
        wraps = rubbed.wraps(unknowns)[0, taut]
        share = np.log(tension[:, :-1] / tension[:, 1:]) / (MU * wraps)
        assert wraps[0, 0] > SHEATH and wraps[1, 0] > wraps[0, 0] + 0.1  # the other's sheath is bent by what is before
        assert (np.abs(share) < 1.05).all()
        if slides:
            assert share == pytest.approx(np.ones_like(share), abs=0.03)
        else:
            assert (share[:, 0] < 0.9).all()


def test_the_shape_depends_on_the_path_and_motors_feel_it(rubbed):
    (up, there), (down, back) = led(rubbed, PULLS), led(rubbed, 1.5 * PULLS, PULLS)
    assert np.linalg.norm(tip(rubbed, up) - tip(rubbed, down)) > 1e-3
    rising, falling = (rubbed.tendon_loads(x, s.packed()) for x, s in ((up, there), (down, back)))
    assert rising.tension[0] > 1.2 * falling.tension[0] > 0.0
    assert (rising.pulls == PULLS[0]).all()


def test_derivatives_of_a_step_are_those_of_differences(rubbed):
    unknowns, state = led(rubbed, PULLS)
    draw = np.random.default_rng(0)
    values = state._replace(pulls=PULLS + 2e-4).packed()
    x = unknowns + 1e-5 * draw.standard_normal(unknowns.shape)
    way = draw.standard_normal(unknowns.shape)
    gradient, hessian = rubbed.derivatives(x, values)
    assert np.abs(rubbed.gradient(x, values) - gradient).max() < 1e-12 * np.abs(gradient).max()
    step = 1e-8 * way
    rise = (rubbed.energy(x + step, values) - rubbed.energy(x - step, values))[0] / 2.0
    assert rise == pytest.approx(float((gradient @ step.T)[0, 0]), rel=1e-5)
    change = 0.5 * (rubbed.gradient(x + step, values) - rubbed.gradient(x - step, values))
    assert np.abs(change - hessian.times(step)).max() < 1e-5 * np.abs(change).max()
    by_pull = np.zeros_like(values)
    by_pull[0, 0] = 1e-8
    moved = 0.5 * (rubbed.gradient(x, values + by_pull) - rubbed.gradient(x, values - by_pull))[0] / 1e-8
    slope = rubbed.load_derivative(x, values)[0, :, 0]
    assert np.abs(moved - slope).max() < 1e-4 * np.abs(slope).max()


def test_pulls_that_are_none_and_friction_that_is_none_are_told(rubbed, monkeypatch):
    unknowns, state = rubbed.new(1)
    with pytest.raises(SoftformError, match="not finite pulls of 6 cables"):
        rubbed.advance(unknowns, np.full((1, 6), np.nan), state, 1.0)
    monkeypatch.setattr(rubbing_arm, "FINEST", 0)
    with pytest.raises(SoftformError, match="no balance at pulls"):
        rubbed.advance(unknowns, np.full((1, 6), 0.2), state, 1.0)
    with pytest.raises(ValueError, match="friction"):
        RealCableArm.model_validate({"friction": {"coefficient": 2.0}})
