"""The rig of an imported body: between the imported shapes, moved as scans of the true robot show it."""

import itertools
import json

import numpy as np
import pytest
import zarr

from softform_core.bodies.imported.interpolation import interpolated
from softform_core.errors import SoftformError
from softform_core.frames.quality import assess_cloud
from softform_core.frames.store import create_frames
from softform_core.geometry.triangle_tree import TriangleTree
from softform_core.halton import halton_actuations
from softform_core.importing.shapes import import_shapes
from softform_core.importing.tips import import_tips
from softform_core.paths import data_dir, models_dir
from softform_core.provenance import made_now
from softform_core.registration.rest_surface import rest_surface
from softform_core.robots import load_robot
from softform_core.shapes.random import random_target
from softform_core.simulation.sensitivity import equilibrium_sensitivities
from softform_core.simulation.simulated_body import equilibrium_unknowns
from softform_core.simulation.store import open_simulation
from softform_rig.best_fit import find_best_fit
from softform_rig.live_body import LiveBody
from softform_rig.origin import origin
from softform_rig.reality import load_reality

pytestmark = pytest.mark.slow

SHEET = """
name: bumps
title: A sheet with two bumps
source: this test
body: {kind: imported, inputs_count: 2, width: 0.1, length: 0.1, surface: sheet}
actuators: {minimum: 0.0, maximum: 5000.0, slew_rate: 4000.0}
devices: [{name: openpneu, channels: [0, 1]}]
surfaces: [{patch: sheet, rows: 8, columns: 8, degree: 3}]
"""
TIP = """
name: leaning
title: A tip
source: this test
body: {kind: imported, inputs_count: 2, width: 0.02, length: 0.02, height: 0.1}
actuators: {minimum: 0.0, maximum: 5000.0, slew_rate: 4000.0}
devices: [{name: openpneu, channels: [0, 1]}]
frames: {tip: {segments: 4, forward_kinematics: [8], jacobian: [8]}}
"""
SIDE = 13
X, Y = (axis.ravel() for axis in np.meshgrid(*[np.linspace(-0.05, 0.05, SIDE)] * 2))
CORNER = (np.arange(SIDE - 1)[:, None] * SIDE + np.arange(SIDE - 1)).ravel()
FACES = np.concatenate([CORNER[:, None] + [0, 1, SIDE + 1], CORNER[:, None] + [0, SIDE + 1, SIDE]])
IMPORTED = np.array(list(itertools.product(np.linspace(0.0, 5000.0, 4), repeat=2)))
SCANNED = halton_actuations(np.zeros(2), np.full(2, 5000.0), 14, 0)
BETWEEN = halton_actuations(np.zeros(2), np.full(2, 5000.0), 6, 40)


def sheet(pressures, true=False):
    """Vertices (169, 3) m; the true sheet is softer, and its second bump lies elsewhere."""
    softer, aside = (1.25, 0.004) if true else (1.0, 0.0)
    height = sum(
        softer * 2e-6 * p * (1.0 - 0.03e-3 * p) * np.exp(-((X - at) ** 2 + Y**2) / 6e-4)
        for p, at in zip(pressures, (-0.025, 0.025 - aside), strict=True)
    )
    return np.stack([X, Y, height], axis=1)


def away(shape, pressures):
    """Mean distance of vertices from the true sheet, mm."""
    return 1e3 * float(
        np.linalg.norm(shape - TriangleTree(sheet(pressures, True)[FACES]).query(shape)[1], axis=1).mean()
    )


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lab")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOFTFORM_DATA", str(folder / "data"))
        (folder / "bumps.yaml").write_text(SHEET)
        (folder / "tip.yaml").write_text(TIP)
        yield folder


@pytest.fixture(scope="module")
def robot(place):
    """The sheet, its shapes imported and fourteen scans of the true one."""
    robot = load_robot(place / "bumps.yaml")
    rows = ["c1,c2,mesh"]
    for number, pressures in enumerate(IMPORTED):
        vertices, faces = (
            "".join(f"{letter} {a} {b} {c}\n" for a, b, c in rows)
            for letter, rows in (("v", sheet(pressures)), ("f", FACES + 1))
        )
        (place / f"{number}.obj").write_text(vertices + faces)
        rows.append(f"{pressures[0]},{pressures[1]},{number}.obj")
    (place / "fem.csv").write_text("\n".join(rows))
    output = place / "data/bumps/simulation.zarr"
    import_shapes(robot, place / "fem.csv", ["c1", "c2"], "mesh", "m", "Pa", output, progress=False)
    provenance = {"seed": 0, "source": "scans of ours", "via": "scanner"} | made_now()
    store = create_frames(place / "data/bumps/frames.zarr", robot, SCANNED, provenance)
    rng = np.random.default_rng(0)
    for number, pressures in enumerate(SCANNED):
        corners = sheet(pressures, True)[FACES[rng.integers(len(FACES), size=3000)]]
        points = np.einsum("nc,ncx->nx", rng.dirichlet([1, 1, 1], 3000), corners) + rng.normal(0.0, 1e-4, (3000, 3))
        points = points[np.linalg.norm(points[:, :2] - [0.03, 0.02], axis=1) > 0.012]
        store.write_captured(number, points, pressures, 1e9 + number, assess_cloud(points, robot))
    assert len(store.captured) == len(SCANNED), store.rejections
    return robot


def test_the_body_is_each_imported_shape_and_moves_smoothly_between_them(robot):
    body = robot.body.simulator()
    store = open_simulation(data_dir() / "bumps/simulation.zarr", robot)
    np.testing.assert_allclose(body.points(IMPORTED), store.converged()[1], atol=1e-9)
    np.testing.assert_allclose(rest_surface(robot).vertices, store.rest_vertices, atol=1e-9)
    found = equilibrium_unknowns(body, BETWEEN)
    np.testing.assert_allclose(body.points(found), [sheet(p) for p in BETWEEN], atol=2e-4)
    slopes = body.moved_points(found, equilibrium_sensitivities(body, found, BETWEEN))
    change = (body.points(BETWEEN + [5.0, 0.0]) - body.points(BETWEEN - [5.0, 0.0])) / 10.0
    np.testing.assert_allclose(slopes[..., 0], change, atol=1e-10)


def test_the_rig_moves_as_the_scans_show_also_between_them_and_over_holes(robot):
    live = LiveBody(robot, load_reality("default", robot))
    live.warm_up(lambda points: None)
    for pressures in (*SCANNED, *BETWEEN):
        gap, left = away(sheet(pressures), pressures), away(live.commanded_shape(pressures), pressures)
        assert left < max(0.3 * gap, 0.08), (pressures, gap, left)
    ideal = LiveBody(robot, load_reality("ideal", robot))
    assert away(ideal.commanded_shape(np.full(2, 5000.0)), np.full(2, 5000.0)) > 0.5


def test_the_rig_says_what_its_body_is(robot, place):
    reality = load_reality("default", robot)
    assert "between 16 imported shapes, moved as 14 scans of the robot show" in origin(robot, reality)
    frames = zarr.open_group(place / "data/bumps/frames.zarr", mode="r+")
    frames.attrs["source"] = "virtual rig, reality default"  # they say nothing of the robot
    assert "no scans of the robot move it" in origin(robot, reality)
    frames.attrs["source"] = "scans of ours"


def test_targets_and_best_fits_are_as_of_any_body(robot):
    target = random_target(robot, 3)
    assert find_best_fit(robot, load_reality("ideal", robot), target, starts=2).mean_mm < 0.02


def test_what_is_missing_or_another_robots_is_said_with_the_command_that_helps(robot, place, monkeypatch):
    with pytest.raises(SoftformError, match="cannot be simulated.*import shapes"):
        robot.body.sampled()
    with pytest.raises(SoftformError, match="cannot be drawn"):
        load_reality("drawn:3", robot)
    (place / "wide.yaml").write_text(SHEET.replace("width: 0.1", "width: 0.2"))
    with pytest.raises(SoftformError, match="another description of 'bumps'"):
        load_robot(place / "wide.yaml").body.simulator()
    monkeypatch.setenv("SOFTFORM_DATA", str(place / "nowhere"))
    with pytest.raises(SoftformError, match=r"shapes are not at .*nowhere.*softform import shapes TABLE"):
        robot.body.simulator()
    with pytest.raises(SoftformError, match="Nothing lies between 2 samples of 2 actuations"):
        interpolated(IMPORTED[:2], np.zeros((2, 3)))


def test_a_chamber_that_no_scan_inflates_moves_what_they_show_nowhere():
    """It was divided by nothing: shapes were NaN as soon as that chamber was inflated."""
    law = interpolated(np.array([[0.0, 0.0], [5e3, 0.0]]), np.array([[0.0], [2.0]]), kernel="linear", degree=0)
    np.testing.assert_allclose(law(np.array([[2.5e3, 0.0], [2.5e3, 5e3]])), [[1.0], [1.0]])


def test_a_tip_is_interpolated_too(place):
    robot = load_robot(place / "tip.yaml")
    tips = np.stack(
        [20.0 * IMPORTED[:, 0] / 5e3, 10.0 * (IMPORTED[:, 1] / 5e3) ** 2, 100.0 + 0.0 * IMPORTED[:, 0]], axis=1
    )
    np.savetxt(place / "tips.csv", np.column_stack([IMPORTED, tips]), delimiter=",", header="c1,c2,x,y,z", comments="")
    output = place / "data/leaning/simulation.zarr"
    import_tips(robot, place / "tips.csv", ["c1", "c2"], ["x", "y", "z"], "mm", "Pa", output, progress=False)
    body = robot.body.simulator()
    assert body.faces.shape == (0, 3) and body.frames == {"tip": 0}
    np.testing.assert_allclose(body.points(IMPORTED)[:, 0], tips / 1e3, atol=1e-9)
    live = LiveBody(robot, load_reality("default", robot))
    assert live.commanded_shape(np.array([2500.0, 0.0]))[0] == pytest.approx([0.01, 0.0, 0.1], abs=1e-4)


def test_physics_beside_imported_kinematics_is_said(place, monkeypatch):
    """A robot that Softform simulates, whose N_fk was learned from shapes of another program."""
    robot = load_robot("membrane")
    reality = load_reality("default", robot)
    assert origin(robot, reality) == ""
    card = json.loads((models_dir() / "membrane/forward_kinematics.json").read_text())
    card["data"]["simulation_seed"] = None
    (place / "models/membrane").mkdir(parents=True)
    (place / "models/membrane/forward_kinematics.json").write_text(json.dumps(card))
    monkeypatch.setenv("SOFTFORM_CONFIG_PATH", str(place))
    assert "learned from imported data: what is measured here tells nothing of them" in origin(robot, reality)
