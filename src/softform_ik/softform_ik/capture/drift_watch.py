"""Notices in daily use that a robot has drifted from its sim-to-real model."""

from collections import deque

import numpy as np

from softform_client.driver_watch import MeasuredValues
from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.evaluation.comparison import PredictedSurface, compare_scan
from softform_core.evaluation.evaluate import drift
from softform_core.forward.actuator_past import ActuatorPast
from softform_core.forward.live_pipeline import LivePipeline
from softform_core.robots import Robot
from softform_ik.reach.capture_checks import check_capture

CAPTURES = 5
"""Shapes in a row of which the middle one decides: one odd scan is no drift."""


class DriftWatch:
    """Compares what goals capture with what the model predicts for the measured values; a new model is judged anew."""

    def __init__(self, robot: Robot, models: LivePipeline, past: ActuatorPast) -> None:
        self._robot, self._models, self._past = robot, models, past
        self._model = self._warning = ""
        self._errors_mm: deque[float] = deque(maxlen=CAPTURES)

    @property
    def finding(self) -> str:
        """What to say of the robot; empty as long as its model fits, and until enough was captured with it."""
        card = self._models.models.card
        return self._warning if card is not None and card.weights_sha256 == self._model else ""

    def note(self, points: Array, settled: MeasuredValues) -> None:
        """Take a captured cloud, (N, 3) m in the robot's frame, of a robot that had settled; raises nothing.

        A cloud that cannot be true tells nothing of the robot.
        """
        models = self._models.models
        if models.card is None:
            return
        if models.card.weights_sha256 != self._model:
            self._model, self._warning = models.card.weights_sha256, ""
            self._errors_mm.clear()
        felt = self._past.felt(models.pipeline.play, settled.values)
        predicted = PredictedSurface.of(models.pipeline, felt)
        try:
            seen = check_capture(points, predicted.points, self._robot)
            distances = compare_scan(predicted, seen).distances
        except SoftformError:
            return
        if len(distances):
            self._errors_mm.append(float(np.mean(distances)))
        if len(self._errors_mm) == CAPTURES:
            self._warning = drift(self._robot, list(self._errors_mm), models.card.errors_mm.after_mean)
