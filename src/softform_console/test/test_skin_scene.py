"""A skin in the scene: what a page is sent, and what is reached for a place picked there, agree to a micrometre."""

import sys
from pathlib import Path

import numpy as np
import pytest
import trimesh

from softform_console.robot_info import outputs_of, skin_of
from softform_console.scene_frames import Kind, Level, SceneItem
from softform_console.scene_topology import SkinGrid
from softform_core.evaluation.look import resting_mesh
from softform_core.forward.robot_models import NONE, ModelRequest, TipModels, open_models
from softform_core.forward.robot_pipeline import load_pipeline
from softform_core.geometry.rigid import RigidTransform
from softform_core.inverse.feature_term import FeatureTerm
from softform_core.robots import load_robot
from softform_core.shapes.features import FeaturePoints
from softform_core.shapes.shape import Shape
from softform_core.shapes.skin_store import save_skin, skin_path
from softform_core.skin.bind import bind_skin
from softform_core.units import MM_PER_M

sys.path.insert(0, str(Path(__file__).parent))

from decoded_frame import decoded  # noqa: E402

ROBOT = load_robot("membrane")


@pytest.fixture(name="kept")
def kept_fixture(tmp_path, monkeypatch):
    """A skin of the membrane in a home of its own, 15 mm off and slanted."""
    monkeypatch.setattr("softform_core.shapes.skin_store.models_of", lambda robot: tmp_path / robot)
    rest = resting_mesh(ROBOT)
    away = np.stack([0.0 * rest.points[:, 0], 0.0 * rest.points[:, 0], 0.015 + 0.1 * rest.points[:, 0]], axis=1)
    skin = bind_skin(Shape.from_mesh(rest.points + away, rest.faces), ROBOT).skin
    skin.card["robot_fingerprint"] = ROBOT.fingerprint()
    save_skin(skin_path(ROBOT.name, "plate"), skin)


def test_what_a_page_shows_of_a_skin_is_what_the_servo_moves(kept):
    name, skin = skin_of(ROBOT)
    outputs = [output.name for output in outputs_of(ROBOT)]
    assert outputs[:2] == ["plate", "sheet"] and name == "plate"
    pressures = 0.6 * ROBOT.actuation_max * np.linspace(0.2, 1.0, 9)
    model = load_pipeline(ROBOT)
    predicted = model.at(ROBOT.patches.samples(1000)).points(pressures) / MM_PER_M
    grid = SkinGrid(skin, 77, outputs.index(name))
    assert len(predicted) == grid.count
    shown = grid.shown(predicted.astype(np.float32))
    item = SceneItem(Kind.MESH, 0, 1.0, shown, topology=grid.topology)
    topology = decoded(SceneItem(Kind.TOPOLOGY, 0, 1.0, topology=grid.topology).encoded(Level.FLOAT, 1))
    mesh = decoded(item.encoded(Level.FLOAT, 2))
    assert topology.topology == mesh.topology == grid.topology.id != 77 and topology.cells == skin.cells
    assert (topology.output == outputs.index(name)).all() and len(topology.triangles) == len(skin.triangles)
    random = np.random.default_rng(0)
    triangle, weights = random.integers(len(topology.triangles), size=50), random.dirichlet(np.ones(3), size=50)
    picked = np.einsum("mc,mcx->mx", weights, mesh.points[topology.triangles[triangle]])
    cell = np.stack([triangle // topology.cells, triangle % topology.cells], axis=1)
    uv = (cell + 0.25 + 0.5 * weights[:, 1:]) / topology.cells  # as PROTOCOL.md has it
    features = FeaturePoints.of(uv, picked, output=[name] * 50).on(ROBOT)
    distances = FeatureTerm.of(model, features).match(pressures, RigidTransform()).distances
    assert distances.max() / MM_PER_M < 1e-6


@pytest.mark.parametrize("kind", ["learned", "fem"])
def test_so_it_is_of_a_skin_on_the_bones_of_a_robot_without_a_surface(kept, kind):
    robot = load_robot("three_chamber")
    body = robot.body.simulator()
    rest = body.bones(body.rest[None])[0]
    tube = trimesh.creation.cylinder(0.02, segment=[rest[0, 0], rest[-1, 1]], sections=12).subdivide()
    skin = bind_skin(Shape.from_mesh(tube.vertices, tube.faces), robot).skin
    skin.card["robot_fingerprint"] = robot.fingerprint()
    save_skin(skin_path(robot.name, "sleeve"), skin)
    assert [(output.name, output.kind) for output in outputs_of(robot)] == [("tip", "frame"), ("sleeve", "skin")]
    models = open_models(kind, ModelRequest(robot, 100, None, NONE))
    assert isinstance(models, TipModels) and models.bones is not None
    pressures = robot.actuation_max * [0.7, 0.2, 0.4]
    bones = models.bones.forward(pressures[None]).points[0] / MM_PER_M
    shown = SkinGrid(skin, 77, 1).shown(bones.astype(np.float32))
    random = np.random.default_rng(0)
    triangle, weights = random.integers(len(skin.triangles), size=50), random.dirichlet(np.ones(3), size=50)
    picked = np.einsum("mc,mcx->mx", weights, shown[skin.triangles[triangle]])
    features = FeaturePoints.of(skin.parameters(triangle, weights), picked, output=["sleeve"] * 50).on(robot)
    assert FeatureTerm.of(models.current, features).match(pressures, RigidTransform()).distances.max() / MM_PER_M < 1e-6


def test_values_of_the_surface_are_those_of_the_skin_over_it(kept):
    _, skin = skin_of(ROBOT)
    uv = ROBOT.patches.samples(1000)
    shown = SkinGrid(skin, 77, 0).shown(uv[:, 0].astype(np.float32))
    along = (skin.vertices[:, 0] - skin.vertices[:, 0].min()) / np.ptp(skin.vertices[:, 0])
    assert shown.shape == (len(skin.vertices),) and np.abs(shown - along).max() < 0.02


def test_a_skin_that_cannot_be_used_is_left_out_and_named(kept, caplog):
    skin_path(ROBOT.name, "plate").write_bytes(b"broken")
    assert [output.name for output in outputs_of(ROBOT)] == ["sheet"]
    assert "the skin 'plate' is not shown" in caplog.text
