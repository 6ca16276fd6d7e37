"""Captures of daily use tell that a robot is no longer what its model was learned from."""

from dataclasses import replace

import numpy as np
import pytest

from softform_client.driver_watch import DriverWatch, MeasuredValues
from softform_core.forward.live_pipeline import LivePipeline
from softform_core.halton import halton_actuations
from softform_core.paths import models_dir
from softform_core.robots import load_robot
from softform_core.units import MM_PER_M
from softform_ik.capture.drift_watch import CAPTURES, DriftWatch

pytestmark = pytest.mark.slow

ROBOT = load_robot("membrane")
ACTUATIONS = halton_actuations(ROBOT.actuation_min, ROBOT.actuation_max, 2 * CAPTURES, 5)


@pytest.fixture
def models():
    return LivePipeline(ROBOT, 3000, None, str(models_dir() / "membrane" / "rig_default"))


def settled(actuation):
    return MeasuredValues(ROBOT.actuators_of(actuation), True, 1.0, 1.0)


def note(watch, models, actuation, off_mm=0.0, unit=1.0):
    points = models.current.points(actuation) + [0.0, 0.0, off_mm]
    watch.note(unit * np.vstack([points / MM_PER_M, np.full((3, 3), np.nan)]), settled(actuation))


def test_a_robot_that_fits_its_model_is_left_alone(models):
    watch = DriftWatch(ROBOT, models, DriverWatch(ROBOT, 60.0))
    for actuation in ACTUATIONS:
        note(watch, models, actuation)
    assert watch.finding == ""


def test_one_odd_scan_is_no_drift_and_five_are(models):
    watch = DriftWatch(ROBOT, models, DriverWatch(ROBOT, 60.0))
    for number, actuation in enumerate(ACTUATIONS[:CAPTURES]):
        note(watch, models, actuation, off_mm=3.0 * (number == 1))
    assert watch.finding == ""
    for actuation in ACTUATIONS[:CAPTURES]:
        note(watch, models, actuation, off_mm=2.0)
    assert "has drifted from its model: 1." in watch.finding and "softform refresh" in watch.finding
    # The new model is judged by what is captured with it.
    card = models.models.card
    models.models = replace(models.models, card=card.model_copy(update={"weights_sha256": "0" * 64}))
    assert watch.finding == ""
    note(watch, models, ACTUATIONS[0], off_mm=2.0)
    assert watch.finding == ""


def test_clouds_that_cannot_be_true_and_a_robot_without_a_model_tell_nothing(models):
    watch = DriftWatch(ROBOT, models, DriverWatch(ROBOT, 60.0))
    for actuation in ACTUATIONS:
        note(watch, models, actuation, off_mm=2.0, unit=1000.0)
        watch.note(np.full((50, 3), np.nan), settled(actuation))
    assert watch.finding == ""
    simulated = LivePipeline(ROBOT, 3000, None, "none")
    watch = DriftWatch(ROBOT, simulated, DriverWatch(ROBOT, 60.0))
    for actuation in ACTUATIONS:
        note(watch, simulated, actuation, off_mm=2.0)
    assert watch.finding == ""
