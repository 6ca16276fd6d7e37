"""A skin of 100 000 triangles for `softform bench console`: what its picks cost."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from softform_core.registration.rest_surface import rest_surface
from softform_core.robots import load_robot
from softform_core.shapes.shape import Shape
from softform_core.shapes.skin_store import save_skin, skin_path
from softform_core.skin.bind import bind_skin

SKIN = "large"
_WHERE = "SOFTFORM_CONFIG_PATH"

_SIDE, _RAISED = 225, 0.005
"""Points a side of its grid, for 2 x 224 x 224 triangles, and its height over the surface, m."""


@contextmanager
def skinned(folder: Path, samples: int) -> Iterator[None]:
    """Give the membrane a skin that rides on so many points, for what is launched while the `with` block lasts.

    Args:
        folder: Where it is kept, as `SOFTFORM_CONFIG_PATH` names it.
        samples: Points of the surface that it rides on.
    """
    robot = load_robot("membrane")
    patches, count = robot.patches, _SIDE * _SIDE
    points = patches.evaluate(rest_surface(robot).control_points, patches.samples(count)) + [0.0, 0.0, _RAISED]
    skin = bind_skin(Shape.from_mesh(points, patches.triangles(count).astype(np.int64)), robot, samples).skin
    skin.card.update(robot_fingerprint=robot.fingerprint())
    (folder / "models" / robot.name).mkdir(parents=True)
    before = os.environ.get(_WHERE)
    os.environ[_WHERE] = str(folder)
    try:
        save_skin(skin_path(robot.name, SKIN), skin)
        yield
    finally:
        if before is None:
            del os.environ[_WHERE]
        else:
            os.environ[_WHERE] = before
