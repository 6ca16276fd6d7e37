"""Notices in daily use that a robot has drifted from its sim-to-real model."""

from collections import deque

import numpy as np

from softform_client.driver_watch import DriverWatch, MeasuredValues
from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.evaluation.comparison import PredictedSurface, compare_scan
from softform_core.evaluation.evaluate import drift
from softform_core.forward.robot_models import SurfaceModels
from softform_core.robots import Robot
from softform_ik.reach.capture_checks import check_capture

CAPTURES = 5
"""Number of shapes in a row whose median decides: one odd scan is no drift."""


class DriftWatch:
    """Compares what goals capture with what the model predicts for the measured values; a new model is judged anew."""

    def __init__(self, robot: Robot, models: SurfaceModels, driver: DriverWatch) -> None:
        self._robot, self._models, self._driver = robot, models, driver
        self._model = self._warning = ""
        self._errors_mm: deque[float] = deque(maxlen=CAPTURES)

    @property
    def finding(self) -> str:
        """Return a warning about the robot; empty while its model fits, and until enough was captured with it."""
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
        effective = self._driver.effective(models.pipeline.memory, settled.values)
        predicted = PredictedSurface.of(models.pipeline, effective)
        try:
            seen = check_capture(points, predicted.points, self._robot)
            distances = compare_scan(predicted, seen).distances
        except SoftformError:
            return
        if len(distances):
            self._errors_mm.append(float(np.mean(distances)))
        if len(self._errors_mm) == CAPTURES:
            self._warning = drift(self._robot, list(self._errors_mm), models.card.errors_mm.after_mean)
