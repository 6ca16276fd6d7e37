"""What the emulated systems see, nine markers on a membrane and its base, from cameras that stand askew; and frames."""

import time

import numpy as np
from scipy.spatial.transform import Rotation

from softform_core.robots import load_robot

PATIENCE = 20.0

BASE = load_robot("membrane").base_markers
SHEET = np.array([[x, y, 0.01] for x in (-0.1, 0.0, 0.1) for y in (-0.1, 0.0, 0.1)])
SHEET_NAMES = [f"m{number:02d}" for number in range(1, 10)]
NAMES = [*BASE, *SHEET_NAMES]
ROTATION, SHIFT = Rotation.from_rotvec([0.5, 1.0, -0.2]), np.array([0.3, 0.2, -1.0])


def sheet(number=0):
    """Places on the robot in a frame, (9, 3) m: the middle goes up and down."""
    places = SHEET.copy()
    places[4, 2] += 0.01 * np.sin(0.1 * number)
    return places


def seen(number=0):
    """The same and the base in the frame of the cameras, (13, 3) m; none occluded."""
    return ROTATION.inv().apply(np.vstack([list(BASE.values()), sheet(number)]) - SHIFT)


def receive(source, count, patience=PATIENCE):
    """The next frames of a source."""
    frames, deadline = [], time.monotonic() + patience
    while len(frames) < count:
        assert time.monotonic() < deadline
        frame = source.receive(0.2)
        frames += [frame] if frame is not None else []
    return frames
