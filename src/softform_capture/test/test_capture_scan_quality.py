"""Coverage, density and workspace on all shipped robots with a surface, at rest and bent."""

import time
from pathlib import Path

import numpy as np
import pytest
import yaml

from softform_capture.scanner.captured_cloud import CloudOptions, cloud_on_robot, inside_workspace
from softform_capture.scanner.scan_quality import scan_quality
from softform_capture.scanner.scan_record import ScanRecord
from softform_core.arrays import Array
from softform_core.forward.robot_pipeline import load_pipeline
from softform_core.paths import robot_file
from softform_core.registration.rest_surface import rest_surface
from softform_core.robots import Robot, load_robot
from softform_core.shapes.shape import Shape
from softform_core.surface.mesh import doubled_areas
from softform_core.units import MM_PER_M
from softform_ros.diagnostics import OK, WARN

STRONG: dict[str, list[float]] = {
    "membrane": [1, 0, 0, 0, 1, 0, 0, 0, 1],
    "manipulator": [1, 0, 0, 1, 0, 0],
    "mannequin": [1, 0, 1, 0, 1, 0, 1, 1, 0],
    "compressible": [1, 0.8, 0.8, 1, 0.8, 0.8, 1, 0.8, 0.8],
}
"""Shares of each actuation's range at which a robot bends or bulges far."""
HALVES = [{"patch": half, "rows": 6, "columns": 8, "degree": 3} for half in ("left", "right")]
IMPORTED = """
name: foreign
title: A tube from elsewhere
source: test
body: {kind: imported, inputs_count: 1, width: 0.04, length: 0.04, height: 0.2, surface: tube}
actuators: {minimum: 0.0, maximum: 5000.0, slew_rate: 4000.0}
surfaces: [{patch: tube, rows: 6, columns: 6, degree: 3}]
devices: [{name: board, channels: [0]}]
"""
SCANNED = 10_000
EVERYWHERE = (np.inf, np.inf)


class Scanned:
    """A robot, what a scanner sees of its shapes, and the shapes (n, P, 3) m: first at rest, then bent far."""

    def __init__(self, robot: Robot, shapes: Array) -> None:
        self.robot, self.shapes = robot, shapes
        self._faces = robot.patches.triangles(shapes.shape[1])
        self._middles = robot.patches.samples(shapes.shape[1])[self._faces].mean(axis=1)

    def area(self, shape: Array) -> float:
        return float(doubled_areas(shape, self._faces).sum()) / 2.0

    def cloud(self, shape: Array, below: tuple[float, float] = EVERYWHERE, count: int = SCANNED) -> Array:
        """Points where u and v lie below these, with a tenth of a millimetre of noise."""
        faces = self._faces[(self._middles < below).all(axis=1)]
        points = Shape.from_mesh(shape, faces).sample(count).points
        return points + np.random.default_rng(0).normal(0.0, 1e-4, points.shape)


@pytest.fixture(scope="module", params=STRONG)
def scanned(request: pytest.FixtureRequest) -> Scanned:
    robot = load_robot(request.param)
    inner = np.random.default_rng(0).random((40, robot.degrees_of_freedom))
    corners = np.concatenate([np.zeros_like(inner[:1]), np.ones_like(inner[:1]), inner < 0.5])
    shares = np.concatenate([[STRONG[robot.name]], corners, inner])
    rest = rest_surface(robot).points
    pipeline = load_pipeline(robot, len(rest))
    actuations = robot.actuation_min + shares * (robot.actuation_max - robot.actuation_min)
    return Scanned(robot, np.concatenate([rest[None], pipeline.points(actuations) / MM_PER_M]))


def described(text: str, folder: Path) -> Robot:
    path = folder / "robot.yaml"
    path.write_text(text, encoding="utf-8")
    return load_robot(path)


@pytest.mark.long
@pytest.mark.parametrize("number", [0, 1], ids=["rest", "strong"])
def test_coverage_is_the_share_of_the_surface_that_is_seen_wherever_it_bends(scanned: Scanned, number: int) -> None:
    robot, shape = scanned.robot, scanned.shapes[number]
    assert scan_quality(scanned.cloud(shape), robot, 0.0).coverage > 0.98
    for half in ((0.5, np.inf), (np.inf, 0.5)):
        assert 0.5 < scan_quality(scanned.cloud(shape, half), robot, 0.0).coverage < 0.65
    assert 0.2 < scan_quality(scanned.cloud(shape, (0.5, 0.5)), robot, 0.0).coverage < 0.38


def test_coverage_follows_the_area_of_a_surface_that_stretches(scanned: Scanned) -> None:
    whole = scanned.area(scanned.shapes[0])
    for shape in scanned.shapes[1:20]:
        share = min(scanned.area(shape) / whole, 1.0)
        assert scan_quality(scanned.cloud(shape), scanned.robot, 0.0).coverage == pytest.approx(share, abs=0.03)


def test_neither_the_number_of_points_nor_their_density_changes_coverage_much(scanned: Scanned) -> None:
    shape = scanned.shapes[0]
    assert scan_quality(scanned.cloud(shape, count=500), scanned.robot, 0.0).coverage > 0.9
    uneven = np.vstack([scanned.cloud(shape), scanned.cloud(shape, (0.5, np.inf), 3 * SCANNED)])
    assert scan_quality(uneven, scanned.robot, 0.0).coverage == pytest.approx(1.0, abs=0.05)
    assert scan_quality(scanned.cloud(shape, count=100), scanned.robot, 0.0).coverage < 0.8


def test_density_is_that_of_what_is_seen(scanned: Scanned) -> None:
    area = scanned.area(scanned.shapes[1])
    whole = scan_quality(scanned.cloud(scanned.shapes[1]), scanned.robot, 0.0)
    assert whole.density == pytest.approx(SCANNED / area, rel=0.03)
    part = scan_quality(scanned.cloud(scanned.shapes[1], (0.5, 0.5)), scanned.robot, 0.0)
    assert part.density == pytest.approx(4.0 * SCANNED / area, rel=0.3)


def test_a_complete_scan_is_well_and_a_quarter_makes_the_scanner_warn(scanned: Scanned) -> None:
    for below, level in ((EVERYWHERE, OK), ((0.5, 0.5), WARN)):
        cloud = cloud_on_robot(scanned.cloud(scanned.shapes[1], below), scanned.robot, CloudOptions())
        record = ScanRecord("is it on?")
        record.note("a.ply", len(cloud.points), time.time(), cloud.quality, {})
        assert record.health({}, 10.0, 0.5).level == level


def test_every_shape_of_a_robot_lies_in_its_workspace(scanned: Scanned) -> None:
    assert inside_workspace(scanned.shapes.reshape(-1, 3), scanned.robot, "box", 0.002).all()


def test_two_patches_are_covered_together(tmp_path: Path) -> None:
    membrane = yaml.safe_load(robot_file("membrane").read_text(encoding="utf-8"))
    robot = described(yaml.safe_dump(membrane | {"surfaces": HALVES}), tmp_path)
    points = np.random.default_rng(0).uniform([-0.16, -0.16, 0.0], [0.16, 0.16, 0.0], (SCANNED, 3))
    assert scan_quality(points, robot, 0.0).coverage > 0.98
    assert scan_quality(points[points[:, 0] < 0.0], robot, 0.0).coverage == pytest.approx(0.5, abs=0.03)


def test_a_robot_without_a_simulator_is_judged_by_its_described_size(tmp_path: Path) -> None:
    robot = described(IMPORTED, tmp_path)
    turn, height = np.random.default_rng(0).uniform([0.0, 0.0], [2.0 * np.pi, 0.2], (SCANNED, 2)).T
    points = np.stack([0.02 * np.cos(turn), 0.02 * np.sin(turn), height], axis=1)
    assert scan_quality(points, robot, 0.0).coverage > 0.98
    assert scan_quality(points[height < 0.1], robot, 0.0).coverage == pytest.approx(0.5, abs=0.05)
    assert inside_workspace(points, robot, "box", 0.002).all()
