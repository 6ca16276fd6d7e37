"""Who moved: by displacement fields, by scans of the rig's bodies, and what is said and kept of it."""

from types import SimpleNamespace

import click
import numpy as np
import pytest

from softform_core.errors import SoftformError
from softform_core.geometry.rigid import RigidTransform
from softform_core.robots import load_robot
from softform_rig.live_body import LiveBody
from softform_rig.reality import load_reality
from softform_rig.scanner import Scanner, half_size
from softform_ros import service_calls
from softform_tools.commands import commission
from softform_tools.commission import (
    UNCLEAR,
    Finding,
    SurfaceSteps,
    all_together,
    base_and_steps,
    complaints,
    layout,
    leak_complaints,
    moved,
    shape_complaint,
)

pytestmark = pytest.mark.slow

ROBOT = load_robot("membrane")
SIDE = 16


def bumps(noise=0.0, seed=0):
    """Displacements of nine chambers in a grid, (9, P) mm."""
    line = np.linspace(0.0, 1.0, SIDE)
    x, y = np.meshgrid(line, line)
    fields = [7.0 * np.exp(-((x - a) ** 2 + (y - b) ** 2) / 0.05) for b in (0.2, 0.5, 0.8) for a in (0.2, 0.5, 0.8)]
    return np.array(fields).reshape(9, -1) + np.random.default_rng(seed).normal(0.0, noise, (9, SIDE**2))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("amplitude", [0.6, 1.0, 1.7])
def test_the_chamber_that_moves_is_found_in_noise_and_behind_holes(seed, amplitude):
    predicted = bumps()
    for chamber, field in enumerate(amplitude * bumps(noise=1.0, seed=seed)):
        field[np.random.default_rng(seed).random(SIDE**2) < 0.4] = np.nan
        assert moved(field, predicted) == [chamber]


@pytest.mark.parametrize("seed", range(5))
def test_a_dead_chamber_moves_nothing_and_two_that_are_joined_are_both_found(seed):
    predicted, random = bumps(), np.random.default_rng(seed)
    noise = random.normal(0.0, 0.5, SIDE**2)
    assert moved(noise, predicted) == []
    one, other = sorted(random.choice(9, 2, replace=False).tolist())
    assert moved(0.8 * predicted[one] + predicted[other] + noise, predicted) == [one, other]


def test_what_no_chamber_does_is_unclear_and_too_little_is_told():
    predicted = bumps()
    assert moved(-predicted[4], predicted) is None
    wave = np.where(np.arange(SIDE**2) % 2, 5.0, -5.0)
    assert moved(wave, predicted) is None
    with pytest.raises(SoftformError, match="Two scans show 20% of the surface"):
        moved(np.where(np.arange(SIDE**2) < 0.2 * SIDE**2, predicted[0], np.nan), predicted)


def test_two_channels_that_are_exchanged_are_found_by_scans_of_a_real_membrane():
    base, steps = base_and_steps(ROBOT, 0.2)
    surface, reality = SurfaceSteps(ROBOT, base, steps), load_reality("default", ROBOT)
    body = LiveBody(ROBOT, reality)
    scanner = Scanner(reality.scanner, RigidTransform(), 1.1 * half_size(ROBOT), 1)
    wired = np.array([0, 1, 3, 2, 4, 5, 6, 7, 8])

    def scan(commands):
        return scanner.scan(body.shape(commands[wired]), body.faces).points

    found = [surface.moved(scan(base), scan(step)) for step in steps[:4]]
    assert found == [[0], [1], [3], [2]]
    assert surface.moved(scan(base), scan(steps[2] + steps[4])) == [3, 4]
    assert surface.moved(scan(base), scan(base)) == []
    assert surface.check_registered(scan(base)) < 2.0
    with pytest.raises(SoftformError, match="Register the scanner"):
        surface.check_registered(scan(base) + [0.0, 0.0, 0.02])
    with pytest.raises(SoftformError, match="shows 0% of the surface"):
        surface.check_registered(np.full((5, 3), 3.0))
    error_mm, moved_mm = surface.shape_errors(scan(base), scan(all_together(ROBOT, base, steps)))
    assert error_mm < 0.5 * moved_mm and not shape_complaint(error_mm, moved_mm)
    assert shape_complaint(*surface.shape_errors(scan(base), scan(steps[0])))


@pytest.mark.parametrize(("name", "why"), [("three_chamber", "is no sheet"), ("compressible", "is no sheet")])
def test_robots_of_which_a_scan_tells_nothing_say_so(name, why):
    robot = load_robot(name)
    with pytest.raises(SoftformError, match=why):
        SurfaceSteps(robot, *base_and_steps(robot, 0.2))


def test_each_step_takes_one_actuator_to_its_share_and_no_further():
    for name in ("membrane", "tendon_rod", "three_chamber"):
        robot = load_robot(name)
        base, steps = base_and_steps(robot, 0.2)
        span = robot.actuator_max - robot.actuator_min
        assert np.allclose(np.abs(steps - base), np.diag(np.abs(steps - base).diagonal()))
        assert (np.abs(steps - base) <= 0.2 * span + 1e-12).all() and (np.abs(steps - base).diagonal() > 0.0).all()
        for step in steps:
            robot.check_commands(step)


def test_all_together_is_left_out_where_actuators_pull_against_each_other():
    expected = {"membrane": True, "tendon_rod": False, "planar_fingers": False, "three_chamber": True}
    for name, is_there in expected.items():
        robot = load_robot(name)
        together = all_together(robot, *base_and_steps(robot, 0.2))
        assert (together is not None) == is_there, name
        if together is not None:
            np.testing.assert_allclose(robot.actuators_of(robot.actuation_of(together)), together, rtol=1e-6)


def test_what_is_wrong_is_said_with_the_channels():
    def told(*findings):
        return complaints([Finding(*one) for one in findings], ROBOT)

    assert told(("c1", ("c1",)), ("c2", ("c2",))) == []
    swapped = told(("c3", ("c4",)), ("c1", ("c1",)), ("c4", ("c3",)))
    assert swapped == ["c4 moved when c3 was asked, and c3 when c4 was: tubes or channels 2 and 3 are swapped."]
    assert told(("c4", ("c3",))) == ["c3 moved when c4 was asked: tubes or channels 2 and 3 are swapped."]
    in_turn = told(("c1", ("c2",)), ("c2", ("c3",)), ("c3", ("c1",)))
    assert len(in_turn) == 3 and in_turn[0].startswith("c2 moved when c1 was asked: tubes or channels 0 and 1")
    assert "Nothing moved when c5" in told(("c5", ()))[0]
    assert "c5 and c6 moved when c5 was asked: their tubes are joined" in told(("c5", ("c5", "c6")))[0]
    assert "like no step" in told(("c5", (UNCLEAR,)))[0]


def test_chambers_are_laid_out_as_they_lie():
    rows = layout(ROBOT).splitlines()
    assert [row.split() for row in rows[1:]] == [["c7", "c8", "c9"], ["c4", "c5", "c6"], ["c1", "c2", "c3"]]
    for name in ("three_chamber", "tendon_rod", "mannequin", "manipulator", "compressible"):
        robot = load_robot(name)
        assert set(robot.actuators) <= set(layout(robot).split())


def test_what_leaks_is_said_with_what_its_driver_says():
    assert leak_complaints({}, ROBOT) == []
    assert leak_complaints({"c4": "5.0 s"}, ROBOT) == [
        "c4 leaks, though its pump holds it, with a time constant of 5.0 s: look at its tube."
    ]
    assert "otherwise than predicted" in shape_complaint(float("nan"), float("nan"))


class Asked:
    """Somebody at a terminal who allows what is asked, or does not."""

    def __init__(self, monkeypatch, allows=True):
        self.questions, self.calibrations = [], []

        def entered(stepper, text):
            self.questions.append(text)
            if not allows:
                raise click.Abort
            return 1

        def call_driver(node, service, seconds):
            self.calibrations.append((service, len(self.questions)))
            return SimpleNamespace(success=True, message="measured")

        monkeypatch.setattr(commission, "_entered", entered)
        monkeypatch.setattr(service_calls, "call_driver", call_driver)
        self.stepper = SimpleNamespace(wait_at_rest=lambda: None, wait_until_measured=lambda: None)

    def offsets(self, robot, by="person"):
        return commission._offsets(None, self.stepper, commission._moved_by_calibration(robot), by)


def test_sensors_that_are_measured_at_rest_need_no_question(monkeypatch):
    asked = Asked(monkeypatch)
    for by in ("person", "scanner"):
        assert asked.offsets(ROBOT, by) == "measured"
    assert asked.calibrations == [("calibrate", 0)] * 2 and not asked.questions


def test_tendons_are_wound_up_only_once_a_person_allows_it(monkeypatch):
    rod, asked = load_robot("tendon_rod"), Asked(monkeypatch)
    assert asked.offsets(rod) == "measured" and asked.calibrations == [("calibrate", 1)]
    assert all(name in asked.questions[0] for name in rod.actuators) and "all at once" in asked.questions[0]
    refused = Asked(monkeypatch, allows=False)
    with pytest.raises(click.Abort):
        refused.offsets(rod)
    with pytest.raises(SoftformError, match="Choose --by person"):
        refused.offsets(rod, "scanner")
    assert not refused.calibrations
