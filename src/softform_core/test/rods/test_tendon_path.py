"""A tendon rod along its path: a closed form without friction, the capstan's law, work over loops, and memory."""

from typing import Any

import numpy as np
import pytest
import yaml

from softform_core.bodies.tendon_rod import path as path_module
from softform_core.bodies.tendon_rod.path import PathState, TendonPath
from softform_core.bodies.tendon_rod.path_dependent import Held
from softform_core.bodies.tendon_rod.simulator import RealTendonRod
from softform_core.errors import SoftformError
from softform_core.paths import robot_file
from softform_core.robots import Robot, load_robot
from softform_core.simulation.simulated_body import PathDependentBody, SweptBody

pytestmark = pytest.mark.slow

ROBOT = load_robot("tendon_robot", "tip")
SLACK = float(ROBOT.safe[0])
ARM, SECTION, DISC, SECTIONS = 0.008, 0.020, 0.0022222, 9
ELASTIC = {"softening": {"r": 1e9}, "friction": {"coefficient": 0.0, "drag": 0.0}}
CREEP = [{"share": 0.6, "time": 3.0}, {"share": 0.6, "time": 60.0}]


def made(*, weightless: bool = False, **path: Any) -> TendonPath:
    content = yaml.safe_load(robot_file("tendon_robot").read_text())
    if weightless:
        content["body"]["gravity"] = [0.0, 0.0, 0.0]
    body = Robot.model_validate(content).body
    return body.real_simulator(RealTendonRod.model_validate({"path": path}))


def pulled(*pulls: float) -> np.ndarray:
    """Pulls in mm; 0 is slack."""
    values = 1e-3 * np.array([pulls])
    return np.where(values > 0.0, values, SLACK)


def led(body: TendonPath, *stations: np.ndarray, held: float = 2.0) -> tuple[np.ndarray, PathState]:
    unknowns, state = body.new(len(stations[0]))
    for pulls in stations:
        unknowns, state = body.advance(unknowns, pulls, state, 1.0)
        unknowns, state = body.advance(unknowns, pulls, state, held)
    return unknowns, state


def tip(body: TendonPath, *stations: np.ndarray) -> np.ndarray:
    return body.points(led(body, *stations)[0])[0, 0]


def tensions(body: TendonPath, unknowns: np.ndarray, state: PathState) -> np.ndarray:
    return body.chains(unknowns, body.in_balance(unknowns, state)).tension


def test_a_weightless_arm_without_friction_bends_as_the_closed_form_of_constant_tension():
    """Each section keeps the moment and force of a chord l(phi, eps) = 2 (l (1 + eps) / phi - r) sin(phi / 2)."""
    body = made(weightless=True, **ELASTIC)
    unknowns, state = led(body, pulled(8.0, 0.0, 0.0, 0.0))
    tension = tensions(body, unknowns, state)[0, 0]
    assert tension[0] > 3.0
    np.testing.assert_allclose(tension, tension[0], rtol=2e-3)  # but for the drag that keeps slack tendons
    bends, pull = body.bends(unknowns)[0], tension[1:]
    angle, stretch = bends[:, 1], bends[:, 3]
    np.testing.assert_allclose(bends[:, [0, 2]], 0.0, atol=1e-6)
    half, radius = 0.5 * angle, SECTION * (1.0 + stretch) / angle
    by_angle = -2.0 * radius / angle * np.sin(half) + (radius - ARM) * np.cos(half)
    by_stretch = 2.0 * SECTION / angle * np.sin(half)
    stiffness = (body.body_wall.tube + body.body_wall.polymer)[0]
    np.testing.assert_allclose(stiffness[1] * angle, -pull * by_angle, rtol=1e-4)
    np.testing.assert_allclose(stiffness[3] * stretch, -pull * by_stretch, rtol=1e-4)
    turned = np.concatenate([[0.0], np.cumsum(angle)])
    chord, middle = 2.0 * radius * np.sin(half), turned[:-1] + half
    x = (chord * np.sin(middle) + DISC * np.sin(turned[1:])).sum()
    z = (chord * np.cos(middle) + DISC * np.cos(turned[1:])).sum()
    np.testing.assert_allclose(body.points(unknowns)[0, 0], [x, 0.0, z], atol=1e-7)


@pytest.mark.parametrize("pulls", [(10.0, 6.0, 0.0, 0.0), (0.0, 0.0, 0.0, 9.0)])
def test_a_tendon_that_slides_has_the_tensions_of_a_capstan_and_one_that_sticks_lies_within(pulls):
    mu = 0.4
    body = made(friction={"coefficient": mu, "drag": 0.0})
    for stations, slides in (((pulled(*pulls),), True), ((pulled(*pulls), pulled(*(0.93 * p for p in pulls))), False)):
        unknowns, state = led(body, *stations)
        tension, wraps = tensions(body, unknowns, state)[0], body.wraps(unknowns)[0]
        taut = np.flatnonzero(np.array(pulls) > 0.0)
        ratio, limit = tension[taut, :-1] / tension[taut, 1:], np.exp(mu * wraps[taut])
        assert limit.max() > 1.02
        assert (ratio <= 1.01 * limit).all() and (ratio >= 0.99 / limit).all()
        if slides:
            np.testing.assert_allclose(ratio, limit, rtol=5e-3)
        else:  # the base has let go, and far from it the tension stays
            assert (ratio[:, 0] < 1.0).all() and (ratio < 0.995 * limit).any()


def loop_work(body: TendonPath) -> float:
    """Work of the motors, J, over a loop of two tendons that is gone through a second time."""
    corners = [pulled(p, q, 0.0, 0.0) for p, q in ((2, 2), (9, 2), (9, 9), (2, 9), (2, 2))]
    unknowns, state = led(body, *corners)
    work, before = 0.0, tensions(body, unknowns, state)[0, :, 0]
    for begin, end in zip(corners, corners[1:], strict=False):
        for share in np.arange(1, 9) / 8:
            felt = state.felt
            unknowns, state = body.advance(unknowns, begin + share * (end - begin), state, 1.0)
            now = tensions(body, unknowns, state)[0, :, 0]
            work += float(0.5 * (before + now) @ (state.felt - felt)[0])
            before = now
    return work


def test_friction_takes_work_over_a_closed_loop_and_an_elastic_robot_gives_all_of_it_back():
    rubbing = {"friction": {"coefficient": 0.4, "drag": 0.02}}
    elastic, friction = loop_work(made(**ELASTIC)), loop_work(made(**ELASTIC | rubbing))
    creeping = loop_work(made(**ELASTIC | {"creep": CREEP}))
    assert friction > 1e-3 and creeping > 1e-3
    assert abs(elastic) < 0.02 * friction


def test_the_shape_depends_on_the_way_and_home_does_not_wholly_erase_it():
    body = made(creep=CREEP, friction={"coefficient": 0.4, "drag": 0.05, "sheath": 1.5}, dead_band=9e-4)
    home, goal = pulled(0, 0, 0, 0), pulled(7, 0, 0, 0)
    straight, over, aside = (
        tip(body, *stations, goal) for stations in ((home,), (home, pulled(12, 0, 0, 0)), (home, pulled(0, 12, 0, 0)))
    )
    assert np.linalg.norm(over - straight) > 5e-3 and np.linalg.norm(aside - straight) > 2e-3
    np.testing.assert_array_equal(straight, tip(body, home, goal))
    fresh, returned = tip(body, home), tip(body, home, pulled(12, 0, 0, 0), home)
    assert np.linalg.norm(returned - fresh) > 1e-3


def test_what_softened_stays_soft():
    body = made(softening={"r": 2.0, "m": 1e-4, "beta": 0.1}, friction={"coefficient": 0.0, "drag": 0.0})
    before = led(body, pulled(5, 0, 0, 0))
    after = led(body, pulled(5, 0, 0, 0), pulled(12, 0, 0, 0), pulled(5, 0, 0, 0))
    first, later = (tensions(body, *one)[0, 0, 0] for one in (before, after))
    assert later < 0.9 * first


@pytest.mark.long
def test_steps_end_near_those_that_are_six_times_as_fine(monkeypatch):
    body = made(creep=CREEP, friction={"coefficient": 0.4, "drag": 0.05, "sheath": 1.5}, dead_band=1.2e-3)
    robots, random = 12, np.random.default_rng(0)
    stations = [np.full((robots, 4), SLACK) for _ in range(3)]
    for station in stations:
        for pulls in station:
            pulls[random.choice(3, 2, replace=False)] = random.uniform(0.001, 0.013, 2)
    found = []
    for step in (path_module._STEP, path_module._STEP / 6.0):
        monkeypatch.setattr(body, "_step", step)
        found.append(body.points(led(body, *stations)[0])[:, 0])
    off = np.linalg.norm(found[0] - found[1], axis=1)
    assert off.mean() < 2e-4 and off.max() < 4e-4


def test_a_step_has_the_gradient_and_hessian_of_its_energy():
    body, rng = made(creep=CREEP), np.random.default_rng(0)
    _, state = body.new(2)
    x = rng.normal(0.0, 0.1, (2, len(body.rest)))
    x[1, 1] = 2.3  # discs that touch
    fading = body.body_wall.fading(state.overstrain + 0.01, 0.0 * body.bends(x), np.array([1.0, 2.0]))
    pulls = np.tile([[0.005, -0.001, 0.002, 0.004]], (2, 1))
    held = Held(pulls, state.anchors + 3e-4, state.bounds + 0.5, state.slips + 1e-4, state.peak + 0.01, fading)
    values, step = held.packed(), 1e-7
    gradient, hessian = body.derivatives(x, values)
    for place in range(x.shape[1]):
        moved = step * np.eye(x.shape[1])[[place, place]]
        ahead, behind = (body.energy(x + sign * moved, values) for sign in (1, -1))
        np.testing.assert_allclose(
            gradient[:, place], (ahead - behind) / (2 * step), atol=1e-6 * np.abs(gradient).max()
        )
        ahead, behind = (body.derivatives(x + sign * moved, values)[0] for sign in (1, -1))
        column = hessian.blocks[:, 0, :, place]
        np.testing.assert_allclose(column, (ahead - behind) / (2 * step), atol=1e-5 * np.abs(column).max())


def test_a_slack_tendon_is_told_and_carries_nothing():
    body = made()
    assert isinstance(body, PathDependentBody)
    unknowns, state = led(body, pulled(6, 0, 0, 0))
    loads = body.tendon_loads(unknowns, body.in_balance(unknowns, state))
    assert loads.tension[0] > 1.0 and loads.stretch[0] > 0.0
    assert (loads.stretch[1:] < -1e-3).all() and not loads.tension[1:].any()


def test_a_robot_that_has_no_balance_is_told_and_its_state_stays(monkeypatch):
    body = made()
    unknowns, state = led(body, pulled(6, 0, 0, 0))
    before = [part.copy() for part in (unknowns, *state)]
    monkeypatch.setattr(path_module, "FINEST", 1)
    monkeypatch.setattr(path_module, "MOST_UPDATES", 0)
    with pytest.raises(SoftformError, match="has no balance"):
        body.advance(unknowns, pulled(9, 0, 0, 0), state, 1.0)
    with pytest.raises(SoftformError, match="not finite pulls"):
        body.advance(unknowns, np.full((1, 4), np.nan), state, 1.0)
    for one, other in zip((unknowns, *state), before, strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_skin_is_closed_looks_outwards_and_ends_at_the_tip():
    body, skin = made(), ROBOT.body.skin()
    unknowns, _ = led(body, pulled(9, 4, 0, 0))
    line, directors = body.stations(unknowns)
    np.testing.assert_allclose(line[0, -1], body.points(unknowns)[0, 0], atol=1e-12)
    a, b, c = skin.vertices(line[0], directors[0])[skin.faces].swapaxes(0, 1)
    volume = np.einsum("fi,fi->", a, np.cross(b, c)) / 6.0
    tube, drums = np.pi * 0.004**2 * 0.2, SECTIONS * np.pi * 0.010**2 * DISC
    assert 0.9 * (tube + drums) < volume < 1.01 * (tube + drums)
    nominal = ROBOT.body.simulator()
    assert isinstance(nominal, SweptBody) and isinstance(body, SweptBody)
    straight, _ = nominal.stations(nominal.rest[None])
    assert straight.shape == line.shape
    np.testing.assert_allclose(straight[0, -1], [0.0, 0.0, 0.2], atol=1e-6)


def test_a_rod_without_discs_cannot_depend_on_its_path():
    with pytest.raises(SoftformError, match="disc behind each section"):
        load_robot("tendon_rod").body.real_simulator(RealTendonRod.model_validate({"path": {}}))
