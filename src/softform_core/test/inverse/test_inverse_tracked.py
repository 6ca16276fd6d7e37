"""A servo on a model that is led by joint steps: a small arm with cables, by one factor a tick."""

from pathlib import Path

import numpy as np
import pytest
import yaml

from softform_core.errors import SoftformError
from softform_core.forward.robot_models import ModelRequest
from softform_core.forward.simulated_models import SimulatedSurface, fem
from softform_core.inverse.servo import Servo, ServoSettings, ServoState
from softform_core.inverse.servo_target import ServoTarget
from softform_core.inverse.tracked_solve import _step
from softform_core.paths import robot_file
from softform_core.robots import TIP, Robot, load_robot
from softform_core.shapes.features import FeaturePoints
from softform_core.units import MM_PER_M

TICK = 1.0 / 30.0


class Led:
    """A servo whose clock goes on by one tick with each iteration, or where there was none."""

    def __init__(self, robot: Robot, model: SimulatedSurface) -> None:
        self.robot, self.model, self.idle = robot, model, 0
        self.servo: Servo | None = None
        low, high = robot.actuation_min, robot.actuation_max
        self.servo = Servo(ServoSettings(low, high, robot.slew_rate, TICK), self.now)
        self.servo.resume_from(robot.safe)  # as a stack begins: its cables slack
        self.factors = 0

    def now(self) -> float:
        return TICK * (self.idle + (0 if self.servo is None else self.servo.iterations))

    def tick(self, place: np.ndarray, accept: bool = True, point: str = TIP, uv: tuple[float, float] = (0.0, 0.0)):
        before = self.servo.iterations
        features = FeaturePoints.of([uv], [place], output=[point]).on(self.robot)
        self.servo.aim(ServoTarget(before, self.now(), features=features, accept_unreachable=accept))
        self.servo.refine(self.model, self.now() + 0.9 * TICK)
        self.idle += self.servo.iterations == before
        return self.servo.command()

    def tip(self, actuation: np.ndarray) -> np.ndarray:
        """Of the model in balance, m."""
        at = self.model.at(self.robot.point_parameters(TIP))
        return at.forward(actuation[None]).points[0].mean(axis=0) / MM_PER_M


def small(folder: Path, **contact: object) -> Robot:
    """The Helix, of four layers a section."""
    described = yaml.safe_load(robot_file("helix").read_text())
    body = described["body"]
    body["rings"], body["cable_circle"] = 1, 0.03
    for section in body["sections"]:
        section["layers"] = 4
    described["surfaces"][0] |= {"rows": 6, "columns": 10}
    body.update(contact)
    file = folder / "small.yaml"
    file.write_text(yaml.safe_dump(described | {"name": "small"}))
    return load_robot(str(file))


@pytest.fixture(scope="module")
def robot(tmp_path_factory: pytest.TempPathFactory) -> Robot:
    return small(tmp_path_factory.mktemp("robots"))


@pytest.fixture(scope="module")
def model(robot: Robot) -> SimulatedSurface:
    found = fem(ModelRequest(robot, 100)).current
    assert isinstance(found, SimulatedSurface)
    return found


def test_a_tip_on_a_circle_is_where_it_is_wanted_by_one_factor_a_tick(robot: Robot, model: SimulatedSurface):
    led = Led(robot, model)
    places = [np.array([0.06 * np.cos(a), 0.06 * np.sin(a), 0.86]) for a in 0.17 * TICK * np.arange(20)]
    for _ in range(45):
        led.tick(places[0])
    tracker = led.servo.tracker
    before = tracker.steps
    for place in places:
        command = led.tick(place)
    assert command.state is ServoState.TRACKING and command.errors.mean_mm < 0.1
    assert tracker.steps - before <= len(places) and tracker.gap_mm < 0.1
    assert np.linalg.norm(led.tip(command.actuation) - places[-1]) < 1e-4  # told and true
    held = robot.body.simulator().tendon_loads(tracker._at.unknowns, tracker._at.actuators)
    assert (held.stretch > 0.0).all() and held.tension.max() < 60.0


def test_slack_cables_are_taken_up_however_far_away_the_target_is(robot: Robot, model: SimulatedSurface):
    led, place = Led(robot, model), np.array([0.10, 0.0, 0.83])
    for _ in range(90):
        command = led.tick(place, accept=False)
    assert command.state is ServoState.TRACKING and command.errors.mean_mm < 0.1


def test_slack_is_taken_up_though_that_moves_the_arm_away_from_a_point_of_its_skin(
    robot: Robot, model: SimulatedSurface
):
    led, errors = Led(robot, model), []
    for _ in range(90):
        errors.append(led.tick(np.array([0.16, -0.05, 0.9]), point="tube", uv=(0.25, 0.9)).errors.mean_mm)
    assert errors[-1] < 0.8 * errors[0]


def test_a_target_is_reached_from_wherever_the_cables_are(robot: Robot, model: SimulatedSurface):
    """Some taut, some slack, as something else left them; the shape is not known before."""
    draw = np.random.default_rng(5)
    for _ in range(3):
        model._model._solved = ()
        led = Led(robot, model)
        pulled = draw.uniform(0.0, 1.0, len(robot.safe)) * robot.actuation_max
        led.servo.resume_from(np.where(draw.random(len(pulled)) < 0.5, pulled, -0.01))
        for _ in range(150):
            command = led.tick(np.array([0.06, 0.03, 0.85]))
        assert command.state is ServoState.TRACKING and command.errors.mean_mm < 0.1


def led_past(tmp_path: Path, obstacle: dict, places: list, ticks: int) -> tuple[Led, list, list]:
    """Lead the tip to places past an obstacle; returns what was commanded last at each, and all skins, m."""
    pytest.importorskip("ipctk", reason="ipctk is not installed")
    robot = small(tmp_path, contact={"obstacles": [obstacle]})
    model = fem(ModelRequest(robot, 100)).current
    led, commands, skins = Led(robot, model), [], []
    for place in places:
        for _ in range(ticks):
            command = led.tick(np.array(place))
            skins.append(model._body.points(led.servo.tracker.unknowns)[0])
        commands.append(command)
    assert led.servo.tracker.gap_mm < 0.1 and led.servo.tracker.is_stable
    return led, commands, skins


def test_an_arm_is_led_along_a_wall_and_away_from_it(tmp_path: Path):
    """The wall is 80 mm away, the arm's radius 45 mm: its tip is to come nearer to targets behind it along the wall."""
    wall = {"shape": "plane", "name": "wall", "point": [0.08, 0.0, 0.0], "normal": [-1.0, 0.0, 0.0]}
    places = [(0.10, 0.0, 0.84), (0.10, 0.05, 0.84), (-0.06, 0.0, 0.86)]
    led, commands, skins = led_past(tmp_path, wall, places, 50)
    assert max(skin[:, 0].max() for skin in skins) < 0.08
    assert skins[49][:, 0].max() > 0.077 and 60.0 < commands[0].errors.mean_mm < 70.0
    assert skins[99][-1][1] > 0.025 and commands[1].errors.mean_mm < 70.0
    assert commands[2].errors.mean_mm < 0.5


def test_an_arm_is_led_around_a_ball(tmp_path: Path):
    ball = {"shape": "sphere", "name": "ball", "centre": [0.14, 0.0, 0.55], "radius": 0.06}
    _, commands, skins = led_past(tmp_path, ball, [(0.10, 0.0, 0.84)], 60)
    away = [np.linalg.norm(skin - ball["centre"], axis=1).min() for skin in skins]
    assert min(away) > 0.06 and commands[0].errors.mean_mm < 5.0


def test_a_target_out_of_reach_is_rested_at_in_balance_or_told(robot: Robot, model: SimulatedSurface):
    led, far = Led(robot, model), np.array([0.3, 0.0, 1.2])
    errors, gaps = [], []
    for _ in range(75):
        command = led.tick(far)
        errors.append(command.errors.mean_mm)
        gaps.append(led.servo.tracker.gap_mm)
    assert max(gaps[60:]) < 1.0 and np.ptp(errors[60:]) < 0.01 * errors[-1]
    assert np.linalg.norm(led.tip(command.actuation) - far) == pytest.approx(1e-3 * errors[-1], rel=1e-2)
    assert errors[-1] > 300.0
    for _ in range(20):
        command = led.tick(far, accept=False)
    assert command.state is ServoState.HOLDING and "out of reach" in command.reason


@pytest.mark.parametrize("far", [(0.9, 0.5, 0.9), (0.0, -1.2, 0.6)])
def test_an_arm_that_cables_pull_as_hard_as_they_may_comes_to_rest_and_stands(
    robot: Robot, model: SimulatedSurface, far
):
    led, errors, gaps = Led(robot, model), [], []
    for _ in range(100):
        errors.append(led.tick(np.array(far)).errors.mean_mm)
        gaps.append(led.servo.tracker.gap_mm)
    assert np.ptp(errors[80:]) < 0.01 * errors[-1] and max(gaps[80:]) < 1.0
    assert errors[80] < 1.01 * min(errors)
    assert led.servo.tracker.is_stable


def test_an_arm_without_balance_holds_and_says_so(robot: Robot, model: SimulatedSurface, monkeypatch):
    led, place = Led(robot, model), np.array([0.1, 0.0, 0.83])
    for _ in range(45):
        before = led.tick(place)
    held = led.servo.command().actuation

    def lost(*_: object) -> None:
        raise SoftformError("The body is not stable on its way to the target.", "Lower the load.")

    monkeypatch.setattr("softform_core.forward.simulated_tracker.linearised", lost)
    command = led.tick(np.array([0.1, 0.0, 0.8]))
    assert command.state is ServoState.HOLDING and "not stable" in command.reason
    assert np.allclose(command.actuation, held)
    monkeypatch.undo()
    command = led.tick(place + [0.001, 0.0, 0.0])
    assert command.state is ServoState.TRACKING and led.servo.tracker.gap_mm < 1.0
    assert command.errors.mean_mm < before.errors.mean_mm + 2.0  # from where it was, not from rest


def test_a_step_is_found_where_a_shape_moves_without_bounds():
    """At the end of stability one direction is so soft that numbers hold nothing of the others."""
    soft = 1e9 * np.array([1.0, 1.0, 0.0])
    step = _step(
        np.outer(soft, soft), -soft, (np.full(3, -1.0), np.full(3, 1.0)), np.ones(1), np.array([[0.1, 0.0, 0.0]])
    )
    assert np.isfinite(step).all() and soft @ step == pytest.approx(1.0, rel=1e-3)


def test_a_robot_whose_simulator_is_no_arm_is_solved_as_before():
    membrane = load_robot("membrane")
    assert SimulatedSurface(membrane, membrane.patches.samples(50)).tracker(membrane.actuation_min) is None
