"""Shapes with histories: the paper's numbers of configurations, the cameras' chain, the store, and one small run."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.spatial import cKDTree

from softform_core.errors import SoftformError
from softform_core.executors import InProcess
from softform_core.robots import load_robot
from softform_rig.reality import load_reality
from softform_studies.tendon_robot.cameras import Cameras
from softform_studies.tendon_robot.configurations import (
    Run,
    check_tendons,
    nominal_configurations,
    planned_runs,
    pulls_of,
)
from softform_studies.tendon_robot.execution import execute, path_body, shares_of
from softform_studies.tendon_robot.hysteresis import chamfer, measured_hysteresis
from softform_studies.tendon_robot.recording import record
from softform_studies.tendon_robot.shapes import joined, read_shapes, straight_line, write_shapes

ROBOT = load_robot("tendon_robot")
REALITY = load_reality("printed", ROBOT)


def test_nominal_configurations_are_as_many_as_printed_and_of_the_printed_kind():
    nominal = nominal_configurations(ROBOT)
    assert nominal.shape == (2773, 4) and len(np.unique(nominal, axis=0)) == 2773
    pulled = nominal > 0.0
    assert pulled[:, :3].sum(axis=1).max() == 2 and not (pulled[:, 3] & pulled[:, :3].any(axis=1)).any()
    assert not nominal[0].any()
    np.testing.assert_array_equal(pulls_of(ROBOT, nominal[0]), ROBOT.safe)
    runs = planned_runs(nominal, 0)
    recorded = {run.part: int(run.is_recorded.sum()) for run in runs}
    assert recorded == {"home": 2773, "random_1": 2773, "random_2": 2773, "walk": 1200, "trajectory": 30}
    for run in runs[:3]:
        found = run.configurations[run.is_recorded]
        np.testing.assert_array_equal(np.unique(found, axis=0), np.unique(nominal, axis=0))
        assert (run.past[:, :, -1][run.is_recorded] == 0.0).all() == (run.part == "home")


def test_a_robot_with_other_tendons_or_without_a_path_is_rejected():
    with pytest.raises(SoftformError, match="three straight tendons"):
        check_tendons(load_robot("three_chamber"))
    rod = load_robot("tendon_rod")
    with pytest.raises(SoftformError, match="does not depend on its path"):
        path_body(rod, load_reality("default", rod))


@pytest.fixture(scope="module")
def shapes():
    nominal = nominal_configurations(ROBOT, 2, 2)
    random, configurations = np.random.default_rng(0), np.zeros((4, 4, 4))
    configurations[:, 1::2] = nominal[1:9].reshape(2, 4, 4).swapaxes(0, 1)
    recorded = np.tile([False, True, False, True], (4, 1))
    other = configurations.copy()
    other[:, 0::2] = nominal[random.integers(len(nominal), size=(4, 2))]
    runs = [Run("home", configurations, recorded), Run("random_1", other, recorded)]
    return joined([found for _, found in execute(ROBOT, REALITY, shares_of(runs), 0, InProcess())])


@pytest.mark.long
def test_recorded_shapes_have_their_histories_and_come_back_from_disk(shapes, tmp_path):
    assert len(shapes) == 16 and shapes.cloud.shape == (16, 512, 3)
    assert (np.diff(shapes.chain) >= 0).all() and not shapes.of_parts("home").q_prior.any()
    second = np.flatnonzero(np.diff(shapes.chain) == 0) + 1
    np.testing.assert_array_equal(shapes.past[second, -2], shapes.q_current[second - 1])
    write_shapes(tmp_path / "a.zarr", ROBOT, shapes, {"command": "", "git_revision": "", "created": ""} | SEEDS)
    again = read_shapes(tmp_path / "a.zarr", ROBOT)
    for name in ("q_current", "past", "part", "chain"):
        np.testing.assert_array_equal(getattr(again, name), getattr(shapes, name))
    for name in ("cloud", "centre_line"):
        np.testing.assert_allclose(getattr(again, name), getattr(shapes, name), atol=1e-4)
    with pytest.raises(SoftformError, match="was made for robot"):
        read_shapes(tmp_path / "a.zarr", load_robot("tendon_rod"))


SEEDS = {"reality": "printed", "seed": 0}


class Interrupted:
    """Does the first item of work only."""

    def run(self, make: Callable[[], Callable[[Any], Any]], items: Sequence[Any]) -> Iterator[Any]:
        yield make()(items[0])
        raise KeyboardInterrupt


class Counting(InProcess):
    """Counts the items of work."""

    items = 0

    def run(self, make: Callable[[], Callable[[Any], Any]], items: Sequence[Any]) -> Iterator[Any]:
        self.items += len(items)
        yield from super().run(make, items)


def test_what_is_interrupted_goes_on_where_it_stopped(tmp_path: Path):
    nominal = nominal_configurations(ROBOT, 1, 1)
    runs = [Run(part, nominal[None, [row]], np.ones((1, 1), dtype=bool)) for part, row in (("home", 1), ("walk", 2))]

    def made(name: str, executor: Any, seed: int = 0) -> Any:
        return record(tmp_path / name, ROBOT, REALITY, runs, seed, executor, lambda count: None)

    at_once = made("whole.zarr", InProcess())
    with pytest.raises(KeyboardInterrupt):
        made("a.zarr", Interrupted())
    assert not (tmp_path / "a.zarr").exists()
    missing = Counting()
    found = made("a.zarr", missing)
    assert missing.items == 1 and len(found) == 2
    again = read_shapes(tmp_path / "a.zarr", ROBOT)
    for name in ("q_current", "part", "chain", "cloud", "centre_line"):
        np.testing.assert_array_equal(getattr(found, name), getattr(at_once, name))
        np.testing.assert_allclose(getattr(again, name), getattr(found, name), atol=1e-4)
    assert not (tmp_path / "a.zarr.parts").exists()
    with pytest.raises(SoftformError, match="is there already"):
        made("a.zarr", InProcess())
    with pytest.raises(KeyboardInterrupt):
        made("b.zarr", Interrupted())
    of_another_seed = Counting()
    made("b.zarr", of_another_seed, seed=1)
    assert of_another_seed.items == 2


def test_clouds_lie_on_the_true_surface_but_for_noise_calibration_and_outliers(shapes):
    surface = shapes.surface()
    for cloud, truth, tip in zip(shapes.cloud, surface, shapes.tip, strict=True):
        off = cKDTree(truth).query(cloud)[0]
        assert np.median(off) < 1.6 and np.quantile(off, 0.97) < 4.0  # the samples are 2.4 mm apart
        assert cKDTree(cloud).query(tip)[0] < 12.0


def test_the_way_by_which_a_configuration_is_reached_shows_in_tip_and_cloud(shapes):
    found = measured_hysteresis(shapes)
    assert found["pairs"] == 8
    assert found["tip_mm"][0] > 2.0 and found["chamfer_m2"][0] > 0.0
    with pytest.raises(SoftformError, match="reached both"):
        measured_hysteresis(shapes.of_parts("home"))


def test_chamfer_sums_squares_both_ways():
    assert chamfer(np.zeros((1, 3)), np.array([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0]])) == pytest.approx(1.0 + 1.0 + 4.0)


def test_a_camera_that_sees_too_little_is_told(shapes):
    cameras = Cameras(ROBOT, shapes.skin.faces, 0, 1)
    vertices = shapes.skin.scaled(1e-3).vertices(*straight_line(ROBOT))
    assert cameras.cloud(vertices).shape == (512, 3)
    with pytest.raises(SoftformError, match="sees 0 points of the robot"):
        cameras.cloud(vertices + [0.0, 0.0, 0.5])


def test_a_dead_camera_is_named_and_nothing_is_recorded_of_the_other_side_alone():
    skin, line = ROBOT.body.skin(), straight_line(ROBOT)
    vertices = skin.vertices(*(one[None] for one in line))[0]
    for dead in (0, 1):
        cameras = Cameras(ROBOT, skin.faces, 0, 0)
        assert len(cameras.cloud(vertices)) == 512
        found = cameras.cameras[dead].scanner.scan(vertices, skin.faces)
        nothing = replace(found, points=found.points[:0])
        cameras.cameras[dead] = replace(cameras.cameras[dead], scanner=SimpleNamespace(scan=lambda *_, n=nothing: n))
        with pytest.raises(SoftformError, match=f"Camera {dead + 1} of 2 sees 0 points"):
            cameras.cloud(vertices)
