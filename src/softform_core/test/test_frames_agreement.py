"""Captures that cannot be of the predicted shape are rejected; those of a real robot with its gap are not."""

import numpy as np
import pytest

from softform_core.errors import SoftformError
from softform_core.forward.robot_pipeline import load_pipeline
from softform_core.frames.agreement import check_agreement
from softform_core.robots import load_robot

ACTUATION = np.array([4000.0, 500.0, 3000.0, 800.0, 2500.0, 1500.0, 200.0, 3500.0, 1000.0])
EVEN = np.full(9, 2500.0)


@pytest.fixture(scope="module")
def pipeline():
    return load_pipeline(load_robot("membrane"))


def scan(pipeline, actuation):
    """Another softness than the model's, noise and a hole, mm."""
    points = pipeline.points(0.85 * actuation)
    points = points[np.linalg.norm(points[:, :2] - [40.0, 20.0], axis=1) > 45.0]
    return points + 0.2 * np.random.default_rng(0).normal(size=points.shape)


@pytest.mark.parametrize("actuation", [ACTUATION, EVEN, np.zeros(9)], ids=["uneven", "even", "at rest"])
def test_a_real_capture_is_accepted(pipeline, actuation):
    check_agreement(scan(pipeline, actuation), pipeline.points(actuation), pipeline.patches)


@pytest.mark.parametrize(
    "image",
    [
        np.diag([-1.0, 1.0, 1.0]),
        np.diag([1.0, -1.0, 1.0]),
        np.diag([1.0, 1.0, -1.0]),
        np.diag([-1.0, -1.0, 1.0]),
        np.eye(3)[[1, 0, 2]],
        np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]),
    ],
    ids=["mirrored in x", "mirrored in y", "upside down", "half a turn", "x and y swapped", "quarter turn"],
)
def test_a_mirrored_or_turned_capture_is_rejected(pipeline, image):
    with pytest.raises(SoftformError, match="mirrored or turned") as rejection:
        check_agreement(scan(pipeline, ACTUATION) @ image.T, pipeline.points(ACTUATION), pipeline.patches)
    assert "registration" in rejection.value.next_step


def test_another_body_is_rejected(pipeline):
    rng = np.random.default_rng(0)
    along, around = rng.uniform(-150.0, 150.0, 3000), rng.uniform(0.0, 2.0 * np.pi, 3000)
    tube = np.stack([along, 60.0 * np.cos(around), 60.0 * np.sin(around) + 70.0], axis=1)
    with pytest.raises(SoftformError, match="on average"):
        check_agreement(tube, pipeline.points(ACTUATION), pipeline.patches)
