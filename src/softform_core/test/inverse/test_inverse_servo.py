"""The servo without ROS, on a clock that the test advances: follows, pre-empts, slews, holds."""

from dataclasses import replace

import numpy as np
import pytest

from softform_core.inverse.closest_points import closest_points_on
from softform_core.inverse.servo import Servo, ServoSettings, ServoState
from softform_core.inverse.servo_target import ServoTarget
from softform_core.shapes.features import FeaturePoints
from softform_core.shapes.shape import Shape
from softform_core.surface.patch_set import SHEET
from softform_core.units import MM_PER_M

REST, FULL = np.zeros(9), np.full(9, 5000.0)
HIDDEN = np.array([3500.0, 700.0, 2800.0, 900.0, 2500.0, 1500.0, 600.0, 3100.0, 1200.0])
SLEW = 4000.0
PERIOD = 0.02
SETTINGS = ServoSettings(REST, FULL, SLEW, period=PERIOD)


class Clock:
    """Steady time that passes by `tick` seconds at each look."""

    def __init__(self, tick=0.0):
        self.now, self.tick = 100.0, tick

    def __call__(self):
        self.now += self.tick
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def servo(clock):
    one = Servo(SETTINGS, clock)
    one.resume_from(REST)
    return one


@pytest.fixture(scope="module")
def model(membrane):
    return membrane.at(SHEET.samples(400))


@pytest.fixture(scope="module")
def cloud_of(membrane):
    """The predicted cloud of actuation, changed if the test says so."""
    dense, known = membrane.at(SHEET.samples(6000)), {}

    def cloud(actuation, change=None):
        key = (tuple(actuation), change)
        if key not in known:
            points = dense.points(np.asarray(actuation, dtype=float))
            known[key] = closest_points_on(Shape((points if change is None else change(points)) / MM_PER_M))
        return known[key]

    return cloud


@pytest.fixture
def target_of(cloud_of, clock):
    """As `cloud_of`, arriving now."""
    return lambda actuation, change=None: ServoTarget(round(clock.now * 1e9), clock.now, cloud_of(actuation, change))


def follow(servo, model, clock, periods, deadline=10.0):
    """Commands of so many periods."""
    commands = []
    for _ in range(periods):
        clock.now += PERIOD
        servo.refine(model, clock.now + deadline)
        commands.append(servo.command())
    return commands


def test_without_a_target_nothing_is_commanded(servo, model, clock):
    assert {one.state for one in follow(servo, model, clock, 3)} == {ServoState.WAITING}
    stranger = Servo(SETTINGS, clock)
    assert stranger.command().actuation is None and not stranger.is_running


def test_a_jump_is_followed_at_the_slew_rate_until_it_is_reached(servo, model, clock, target_of):
    commands, last = [], REST
    for _ in range(50):
        servo.aim(target_of(HIDDEN))
        commands += follow(servo, model, clock, 1)
        assert np.abs(commands[-1].actuation - last).max() <= SLEW * PERIOD * (1.0 + 1e-9)
        last = commands[-1].actuation
    steps = np.abs(np.diff([REST, *(one.actuation for one in commands)], axis=0)).max(axis=1)
    assert steps[:40] == pytest.approx(SLEW * PERIOD), "as fast as allowed, and evenly"
    assert last == pytest.approx(HIDDEN, abs=30.0)
    assert commands[-1].converged and not commands[0].converged
    assert commands[0].errors.mean_mm > 10.0 * commands[-1].errors.mean_mm
    assert {one.state for one in commands} == {ServoState.TRACKING} and not any(one.reason for one in commands)


def test_the_errors_are_those_of_the_command_not_of_the_solution(servo, model, clock, target_of):
    target = target_of(HIDDEN)
    servo.aim(target)
    command = follow(servo, model, clock, 1)[0]
    distances = target.shape.query(model.points(command.actuation)).distances
    assert command.errors.mean_mm == pytest.approx(distances.mean())
    assert command.errors.max_mm == pytest.approx(distances.max())


def test_a_moving_target_is_followed_with_few_iterations(servo, model, clock, target_of):
    servo.resume_from(HIDDEN)
    for moment in np.arange(0.0, 1.0, PERIOD):
        wanted = HIDDEN + 500.0 * np.sin(2.0 * np.pi * moment) * np.cos(np.arange(9))
        servo.aim(target_of(wanted))
        command = follow(servo, model, clock, 1)[0]
        assert command.actuation == pytest.approx(wanted, abs=40.0)
        assert command.answers.arrived == pytest.approx(clock.now - PERIOD)
        assert servo._solve.iterations <= 3


def test_the_latest_target_wins_even_in_the_middle_of_a_solve(servo, model, clock, target_of):
    class Distracted:
        """A model that is overtaken: a newer target comes while it works on the first iteration."""

        def __init__(self):
            self.newer = None

        def __getattr__(self, name):
            return getattr(model, name)

        def jacobian_along(self, state, directions):
            if self.newer is None:
                self.newer = target_of(HIDDEN)
                servo.aim(self.newer)
            return model.jacobian_along(state, directions)

    distracted = Distracted()
    servo.aim(target_of(HIDDEN[::-1]))
    assert servo.refine(distracted, clock.now + 10.0)
    assert servo._solve.targets.newest is distracted.newer
    assert servo._solution == pytest.approx(HIDDEN, abs=30.0)
    assert servo.command().answers is distracted.newer
    assert servo.iterations >= 2


def test_what_is_commanded_names_the_target_it_comes_from(servo, model, clock, target_of):
    """Whoever sends only what answers a target must not miss a step of the way."""
    first = target_of(HIDDEN)
    servo.aim(first)
    clock.now += PERIOD
    servo.refine(model, clock.now + 10.0)
    servo.aim(target_of(HIDDEN[::-1]))
    command = servo.command()
    assert command.answers is first and (command.actuation != REST).any()


def test_no_iteration_begins_that_would_end_after_the_deadline(model, target_of):
    clock = Clock(tick=0.001)
    servo = Servo(SETTINGS, clock)
    servo.resume_from(REST)
    servo.aim(target_of(HIDDEN))
    while not servo.refine(model, clock.now + PERIOD):
        assert clock.now < 110.0
    assert servo.command().answers.stamp != 0
    longest = servo._iteration_seconds
    assert longest > 0.0
    servo.aim(ServoTarget(0, clock.now, target_of(HIDDEN[::-1]).shape))
    assert not servo.refine(model, clock.now + 0.5 * longest)
    assert servo.command().answers.stamp != 0, "the new target is not answered before it was worked on"
    while not servo.refine(model, clock.now + PERIOD):
        assert clock.now < 120.0
    assert servo.command().answers.stamp == 0


def test_a_slow_model_follows_more_coarsely_instead_of_not_at_all(model, target_of):
    clock = Clock(tick=0.4 * PERIOD)
    servo = Servo(SETTINGS, clock)
    servo.resume_from(REST)
    for _ in range(100):
        servo.aim(ServoTarget(0, clock.now, target_of(HIDDEN).shape))
        servo.refine(model, clock.now + PERIOD)
        last = servo.command()
    assert last.actuation == pytest.approx(HIDDEN, abs=30.0)


def test_one_slow_iteration_is_not_the_last(model, target_of):
    clock = Clock(tick=0.0)
    servo = Servo(SETTINGS, clock)
    servo.resume_from(REST)
    servo.aim(ServoTarget(0, clock.now, target_of(HIDDEN).shape))
    clock.tick = 0.6 * PERIOD  # while one iteration is made
    servo.refine(model, clock.now + 100.0 * PERIOD)
    clock.tick = 0.0
    for _ in range(100):
        servo.aim(ServoTarget(0, clock.now, target_of(0.5 * HIDDEN).shape))
        servo.refine(model, clock.now + 0.4 * PERIOD)  # less than half a period is left, as at high rates
        last = servo.command()
        clock.now += PERIOD
    assert last.actuation == pytest.approx(0.5 * HIDDEN, abs=30.0)


def test_stale_targets_hold_the_last_command_with_a_reason(servo, model, clock, target_of):
    servo.aim(target_of(HIDDEN))
    before = follow(servo, model, clock, 5)[-1]
    clock.now += SETTINGS.stale_after
    held = follow(servo, model, clock, 3)
    assert {one.state for one in held} == {ServoState.HOLDING}
    assert all((one.actuation == before.actuation).all() for one in held)
    assert "No target came for 0.5 s" in held[0].reason
    servo.aim(target_of(HIDDEN))
    again = follow(servo, model, clock, 1)[0]
    assert again.state is ServoState.TRACKING and not again.reason
    assert np.abs(again.actuation - before.actuation).max() <= SLEW * PERIOD * (1.0 + 1e-9), "no bump after the pause"


@pytest.mark.parametrize(
    "change",
    [
        lambda points: points * [1.0, 1.0, -1.0] - [0.0, 0.0, 60.0],
        lambda points: points + [0.0, 0.0, 1000.0],
        lambda points: points * 3.0,
    ],
    ids=["mirrored and below", "a metre above", "three times as large"],
)
def test_a_target_out_of_reach_holds_the_last_command_with_a_reason(servo, model, clock, target_of, change):
    servo.aim(target_of(HIDDEN))
    before = follow(servo, model, clock, 10)[-1]
    servo.aim(target_of(HIDDEN, change))
    held = follow(servo, model, clock, 3)[-1]
    assert held.state is ServoState.HOLDING and "out of reach" in held.reason and "mm away" in held.reason
    assert (held.actuation == before.actuation).all()
    servo.aim(target_of(HIDDEN))
    assert follow(servo, model, clock, 1)[0].state is ServoState.TRACKING


def test_a_target_out_of_reach_is_followed_as_near_as_it_goes_where_that_is_meant(servo, model, clock):
    def aim(accept):
        wanted = FeaturePoints.of([[0.5, 0.5]], [[0.0, 0.0, 0.3]])
        servo.aim(ServoTarget(round(clock.now * 1e9), clock.now, features=wanted, accept_unreachable=accept))
        return follow(servo, model, clock, 20)[-1]

    assert aim(False).state is ServoState.HOLDING
    pulled = aim(True)
    assert pulled.state is ServoState.TRACKING and pulled.errors.mean_mm > SETTINGS.most_error_mm
    assert pulled.actuation[4] > 1000.0


def test_no_command_leaves_the_bounds(servo, model, clock, target_of):
    random = np.random.default_rng(0)
    for _ in range(40):
        servo.aim(target_of(random.uniform(-4000.0, 9000.0, 9)))
        for one in follow(servo, model, clock, 4):
            assert (one.actuation >= REST).all() and (one.actuation <= FULL).all()


def test_a_target_with_a_hole_is_followed_where_it_is(servo, model, clock, target_of):
    def punched(points):
        return points[np.linalg.norm(points[:, :2] - [40.0, 30.0], axis=1) > 50.0]

    for _ in range(60):
        servo.aim(target_of(HIDDEN, punched))
        last = follow(servo, model, clock, 1)[0]
    assert last.actuation == pytest.approx(HIDDEN, abs=60.0) and servo._solve.leaves_points_out
    servo.aim(target_of(HIDDEN))
    follow(servo, model, clock, 2)
    assert not servo._solve.leaves_points_out


def test_feature_points_are_followed_alone_and_beside_a_shape(servo, model, membrane, clock, target_of):
    uv = np.random.default_rng(1).uniform(0.1, 0.9, (30, 2))
    wanted = membrane.at(uv).points(HIDDEN) / MM_PER_M

    def features():
        return ServoTarget(round(clock.now * 1e9), clock.now, features=FeaturePoints.of(uv, wanted))

    for _ in range(60):
        servo.aim(features())
        last = follow(servo, model, clock, 1)[0]
    assert last.actuation == pytest.approx(HIDDEN, abs=30.0) and last.converged
    clock.now += SETTINGS.stale_after
    for _ in range(60):
        servo.aim(target_of(HIDDEN[::-1]))
        last = follow(servo, model, clock, 1)[0]
    assert last.actuation == pytest.approx(HIDDEN[::-1], abs=30.0), "stale feature points no longer count"
    servo.aim(features())
    both = follow(servo, model, clock, 30)[-1]
    assert both.answers.features is not None
    assert np.abs(both.actuation - HIDDEN[::-1]).max() > 100.0, "both are weighed against each other"


def test_a_new_model_is_used_from_the_next_step_on(servo, model, clock, target_of):
    class Weaker:
        """The same robot at four fifths of the pressure."""

        def __getattr__(self, name):
            return getattr(model, name)

        def forward(self, actuation):
            return replace(model.forward(0.8 * actuation), actuation=actuation)

        def jacobian_along(self, state, directions):
            return 0.8 * model.jacobian_along(replace(state, actuation=0.8 * state.actuation), directions)

    for used, expected in ((model, HIDDEN), (Weaker(), HIDDEN / 0.8)):
        for _ in range(60):
            servo.aim(target_of(HIDDEN))
            last = follow(servo, used, clock, 1)[0]
        assert last.actuation == pytest.approx(expected, abs=30.0)


def test_a_model_that_predicts_nan_holds_the_last_command(servo, model, clock, target_of):
    class Broken:
        def __getattr__(self, name):
            return getattr(model, name)

        def forward(self, actuation):
            state = model.forward(actuation)
            return replace(state, points=np.full_like(state.points, np.nan))

    servo.aim(target_of(HIDDEN))
    before = follow(servo, model, clock, 5)[-1]
    held = follow(servo, Broken(), clock, 2)[-1]
    assert held.state is ServoState.HOLDING and held.reason
    assert (held.actuation == before.actuation).all()
    servo.aim(target_of(HIDDEN))
    assert follow(servo, model, clock, 1)[0].state is ServoState.TRACKING


def test_after_another_commander_it_goes_on_from_what_is_held(servo, model, clock, target_of):
    servo.aim(target_of(HIDDEN))
    follow(servo, model, clock, 60)
    past = round(clock.now * 1e9)
    servo.drop(lambda target: target.stamp <= past)
    assert follow(servo, model, clock, 1)[0].actuation is None and not servo.is_running and not servo.is_aimed
    clock.now += 5.0
    servo.aim(target_of(HIDDEN))
    servo.resume_from(FULL + 300.0)
    first = follow(servo, model, clock, 1)[0]
    assert np.abs(first.actuation - FULL).max() <= SLEW * PERIOD * (1.0 + 1e-9)
    servo.drop(lambda target: target.stamp <= past)
    assert servo.is_aimed and servo.is_running, "a target from after the other's turn is kept"
    servo.pause()
    assert servo.is_aimed and not servo.is_running
