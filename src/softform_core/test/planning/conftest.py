"""A made-up robot whose motion is known exactly, and the shipped one."""

import numpy as np
import pytest
import trimesh

from softform_core.forward.live_pipeline import LivePipeline
from softform_core.paths import models_dir
from softform_core.planning.clearance import ClearanceGauge
from softform_core.planning.obstacles import MeshObstacle
from softform_core.planning.surface_margins import MarginedSurface
from softform_core.planning.sweep import MotionChecker
from softform_core.robots import load_robot
from softform_core.surface.patch_set import SHEET

RANGE = 5000.0


class SlidingPlate:
    """A plate of 20 mm x 20 mm in the plane z = 0 that two pressures push along x and y, 100 mm each over the range."""

    patches = SHEET

    def __init__(self, points=25):
        self.uv = SHEET.samples(points)

    def points(self, actuation):
        moved = np.asarray(actuation) / RANGE * 100.0
        at_rest = np.column_stack([20.0 * self.uv - 10.0, np.zeros(len(self.uv))])
        return at_rest + np.concatenate([moved, np.zeros((*moved.shape[:-1], 1))], axis=-1)[..., None, :]


@pytest.fixture(scope="session")
def plate():
    return MarginedSurface(SlidingPlate(), None)


@pytest.fixture(scope="session")
def plate_checker(plate):
    """Checks motions of the plate among boxes, given as centers and sizes, mm."""

    def checker(*boxes, clearance=1.0, should_stop=lambda: False):
        parts = [
            trimesh.creation.box(extents=size, transform=trimesh.transformations.translation_matrix(center))
            for center, size in boxes
        ]
        mesh = trimesh.util.concatenate(parts)
        region = np.array([[-20.0, -20.0, -20.0], [120.0, 120.0, 20.0]])
        gauge = ClearanceGauge(MeshObstacle(mesh.vertices, mesh.faces), region, plate.faces, clearance)
        return MotionChecker(plate, gauge, np.full(2, RANGE), should_stop)

    return checker


@pytest.fixture(scope="session")
def robot():
    return load_robot("membrane")


@pytest.fixture(scope="session")
def models(robot):
    return LivePipeline(robot, 41**2, sim_to_real=str(models_dir() / robot.name / "rig_default"))


@pytest.fixture(scope="session")
def surface(models):
    return MarginedSurface(models.current, models.models.uncertainty)


@pytest.fixture(scope="session")
def simulated(models):
    return MarginedSurface(models.simulated, None)


@pytest.fixture(scope="session")
def actuations(robot):
    """Random ones, and corners of the box of actuations."""
    generator = np.random.default_rng(5)
    corners = np.where(generator.random((6, robot.degrees_of_freedom)) < 0.5, robot.actuation_min, robot.actuation_max)
    return np.concatenate([generator.uniform(robot.actuation_min, robot.actuation_max, (6, len(corners[0]))), corners])
