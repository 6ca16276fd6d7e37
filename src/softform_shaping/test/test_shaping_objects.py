"""Objects: from a file of tetrahedra, of a material that yields and breaks; another grasp for what is out of reach."""

import numpy as np
import pytest
import yaml
from held_block import BENT, BLOCK

from softform_core.errors import SoftformError
from softform_shaping.control import shape_errors
from softform_shaping.controllers import Task
from softform_shaping.model import HeldModel
from softform_shaping.objects import ShapedObject, load_object
from softform_shaping.ours import Ours, OursController
from softform_shaping.plastic_object import PlasticObject
from softform_shaping.regrasp import advised_grasp, held_at, nearest
from softform_shaping.scene import make_scene
from softform_shaping.segmentation import dominant_hue, object_pixels
from softform_shaping.session import shape_object
from softform_shaping.visual_mesh import VisualMesh

pytestmark = pytest.mark.slow

CELLS, CELL = (4, 2, 8), 0.025
_CORNERS = [(0, 1, 3, 7), (0, 1, 5, 7), (0, 2, 3, 7), (0, 2, 6, 7), (0, 4, 5, 7), (0, 4, 6, 7)]
YIELD, HARDENING = 5e7, 5e8
BAR = {
    **BLOCK,
    "name": "bar",
    "body": {
        **BLOCK["body"],
        "shape": [{"part": "box", "begin": [-0.01, -0.005, 0.0], "end": [0.01, 0.005, 0.2]}],
        "mesh_size": 0.01,
        "material": {"law": "neo_hookean", "coefficients": [1.147e9]},
        "poisson_ratio": 0.36,
    },
    "truth": {
        "gravity": [0.0, 0.0, 0.0],
        "plasticity": {"yield_stress": YIELD, "hardening": HARDENING, "rupture": 0.02},
    },
    "yield_stress": YIELD,
}


def bent(angle: float) -> np.ndarray:
    """Both ends turned so far about x, and as near to each other as the arc between them."""
    nearer = 0.08 * (1.0 - np.sin(angle) / angle)
    return np.array([0.0, 0.0, nearer, -angle, 0.0, 0.0, 0.0, 0.0, -nearer, angle, 0.0, 0.0])


def write_block(path) -> None:
    """The block of `held_block` as tetrahedra in a file, its corner in the origin, in mm."""
    counts = np.array(CELLS) + 1
    points = 1e3 * CELL * np.stack(np.meshgrid(*map(np.arange, counts), indexing="ij"), -1).reshape(-1, 3)
    cells = []
    for corner in np.ndindex(*CELLS):
        around = [np.ravel_multi_index(tuple(np.add(corner, bits)), counts) for bits in np.ndindex(2, 2, 2)]
        for one in _CORNERS:
            four = [around[k] for k in one]
            turned = np.linalg.det(points[four[1:]] - points[four[0]]) < 0.0
            cells.append([four[0], four[2], four[1], four[3]] if turned else four)
    lines = [
        "# vtk DataFile Version 3.0",
        "block",
        "ASCII",
        "DATASET UNSTRUCTURED_GRID",
        f"POINTS {len(points)} double",
    ]
    lines += [" ".join(map(str, point)) for point in points.tolist()]
    lines += [f"CELLS {len(cells)} {5 * len(cells)}", *(" ".join(map(str, [4, *cell])) for cell in cells)]
    lines += [f"CELL_TYPES {len(cells)}", *["10"] * len(cells)]
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def from_file(tmp_path_factory) -> ShapedObject:
    folder = tmp_path_factory.mktemp("object")
    write_block(folder / "block.vtk")
    body = {key: value for key, value in BLOCK["body"].items() if key not in ("shape", "support", "mesh_size")}
    body |= {"kind": "mesh", "file": "block.vtk", "unit": "mm", "origin": [0.05, 0.025, 0.0], "supports": []}
    truth = {key: value for key, value in BLOCK["truth"].items() if key != "mesh_scale"}
    text = yaml.safe_dump({**BLOCK, "body": {**body, "surface": "whole"}, "truth": truth})
    (folder / "block.yaml").write_text(text)
    return load_object(folder / "block.yaml")


def test_an_object_whose_shape_is_a_file_is_held_seen_and_shaped_as_any_other(from_file, model):
    own = HeldModel(from_file.body.simulator())
    assert own.size == pytest.approx(model.size) and len(own.rest_nodes) == np.prod(np.add(CELLS, 1))
    low, high = own.rest_nodes.min(axis=0), own.rest_nodes.max(axis=0)
    assert (low, high) == (pytest.approx([-0.05, -0.025, 0.0]), pytest.approx([0.05, 0.025, 0.2]))
    ends = [shape.nodes[held].mean(axis=0) for shape in (own.shape(BENT),) for held in own.held]
    assert ends == [
        pytest.approx(shape, abs=2e-3) for shape in (model.shape(BENT).nodes[h].mean(axis=0) for h in model.held)
    ]
    scene = make_scene(from_file, own, 3)
    assert scene.truth.has.all() and 1e-5 < np.abs(scene.truth.nodes - own.rest_nodes).max() < 0.02
    picture = scene.look()
    assert object_pixels(picture, dominant_hue(picture)).sum() > 1000


def test_a_file_of_an_object_that_nothing_would_hold_is_told(from_file, tmp_path):
    write_block(tmp_path / "block.vtk")
    body = from_file.body.model_dump(mode="json")
    for changed, words in (
        ({"loads": []}, "nothing would move it"),
        ({"supports": [{"at": [0.0, 0.0, 0.0]}]}, "no support"),
        ({"surface": "tube"}, "whole"),
    ):
        (tmp_path / "wrong.yaml").write_text(yaml.safe_dump({**BLOCK, "body": {**body, **changed}, "truth": {}}))
        with pytest.raises(SoftformError, match=words):
            load_object(tmp_path / "wrong.yaml")


@pytest.mark.long
def test_an_object_of_a_step_file_is_meshed_held_seen_and_shaped(tmp_path):
    """A bar with a round hole and a boss, as CAD programs write it, in mm."""
    gmsh = pytest.importorskip("gmsh")
    gmsh.initialize(readConfigFiles=False, interruptible=False)
    gmsh.option.setNumber("General.Terminal", 0)
    block, hole = (
        gmsh.model.occ.addBox(-50, -25, 0, 100, 50, 200),
        gmsh.model.occ.addCylinder(0, -30, 100, 0, 60, 0, 15),
    )
    boss = gmsh.model.occ.addCylinder(0, 0, 60, 60, 0, 0, 18)
    held, _ = gmsh.model.occ.cut([(3, block)], [(3, hole)])
    gmsh.model.occ.fuse(held, [(3, boss)])
    gmsh.model.occ.synchronize()
    gmsh.write(str(tmp_path / "part.step"))
    gmsh.finalize()
    body = {key: value for key, value in BLOCK["body"].items() if key not in ("shape", "support")}
    body |= {"kind": "mesh", "file": "part.step", "supports": [], "surface": "whole"}
    (tmp_path / "part.yaml").write_text(yaml.safe_dump({**BLOCK, "name": "part", "body": body, "truth": {}}))
    described = load_object(tmp_path / "part.yaml")
    model = HeldModel(described.body.simulator())
    low, high = model.rest_nodes.min(axis=0), model.rest_nodes.max(axis=0)
    assert low == pytest.approx([-0.05, -0.025, 0.0], abs=1e-4) and high == pytest.approx([0.06, 0.025, 0.2], abs=1e-4)
    hollow = np.linalg.norm(model.rest_nodes[:, [0, 2]] - [0.0, 0.1], axis=1)
    assert hollow.min() > 0.012, "the hole is filled"
    task = Task(model, VisualMesh(model.skin, model.faces, len(model.rest_nodes), 2), model.shape(BENT).nodes)
    scene = make_scene(described, model, 3)
    shaped = shape_object(OursController(task, Ours()), scene, 2)
    first, last = shaped.iterations
    assert last.true_rms < 0.8 * first.true_rms
    assert shape_errors(last.estimate.nodes, scene.truth.nodes)[0] < 1.0


@pytest.fixture
def bar() -> PlasticObject:
    described = ShapedObject.model_validate(BAR)
    return PlasticObject(described, HeldModel(described.body.simulator()).rest_nodes)


def test_what_is_bent_a_little_springs_back_and_what_yields_stays_bent(bar):
    model = HeldModel(ShapedObject.model_validate(BAR).body.simulator())
    bar.move(bent(0.1))
    assert bar.stress == pytest.approx(model.stresses(model.shape(bent(0.1))).max(), rel=1e-3) and bar.stress < YIELD
    assert bar.plastic_strain == 0.0 and bar.left_over()[1] < 1e-3
    bar.move(bent(0.25))
    yielded = bar.plastic_strain
    assert 1e-3 < yielded < 0.02 and not bar.is_broken
    assert bar.stress <= (YIELD + HARDENING * yielded) * 1.001
    assert bar.stress < 0.8 * model.stresses(model.shape(bent(0.25))).max()
    far, angle = bar.left_over()
    assert far > 1.0 and 0.01 < angle < 0.9
    bar.move(np.zeros(12))
    assert np.abs(bar.nodes - model.rest_nodes).max() > 1e-4, "its ends are back, and its middle is not"


def test_what_is_bent_too_far_breaks_and_its_parts_go_with_their_grippers(bar):
    whole = len(bar.skin[1])
    bar.move(bent(1.2))
    assert bar.is_broken and len(bar.skin[1]) < whole
    before, apart = bar.nodes, np.zeros(12)
    apart[8] = 0.05
    bar.move(bar.poses + apart)
    moved = np.linalg.norm(bar.nodes - before, axis=1)
    assert np.isclose(moved, 0.0, atol=1e-9).any() and np.isclose(moved, 0.05).any()
    assert (np.isclose(moved, 0.0, atol=1e-9) | np.isclose(moved, 0.05)).all()


def test_plasticity_that_means_nothing_is_told():
    described = ShapedObject.model_validate(BAR)
    model = HeldModel(described.body.simulator())
    for truth, words in (
        ({**BAR["truth"], "uneven": 0.3}, "plasticity alone"),
        ({"plasticity": {"yield_stress": YIELD}}, "hardening"),
    ):
        with pytest.raises(SoftformError, match=words):
            make_scene(described.model_copy(update={"truth": truth}), model, 0)


def test_another_grasp_is_advised_where_it_comes_nearer(block, model):
    inwards = 0.2 * 0.2, 0.0
    farther_in = HeldModel(block.model_copy(update={"body": held_at(block.body, inwards)}).body.simulator())
    target = farther_in.shape(1.5 * BENT).nodes
    poses, error = nearest(model, model.shape(BENT).nodes)
    assert error < 0.2 and poses == pytest.approx(BENT, abs=0.02)
    advice = advised_grasp(block, target)
    assert advice.inwards == inwards and advice.rms < 0.7 * advice.present, advice
    assert "40 mm farther in at the left" in str(advice)
    with pytest.raises(SoftformError, match="places? for each node"):
        nearest(model, target[1:])
