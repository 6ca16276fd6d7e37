"""Layers of chambers under a cover: derivatives, contact, the membrane as a special case, symmetry, bad input."""

import numpy as np
import open3d as o3d
import pytest
from pydantic import ValidationError
from skfem import MeshQuad

from softform_core.bodies.layered.description import LayeredBody
from softform_core.bodies.layered.equilibrium import LayeredProblem, contact_gaps
from softform_core.bodies.layered.grid import finer_lines, mesh_torso, torso_points
from softform_core.bodies.layered.model import Plan, build_layers, layers_on_grid
from softform_core.bodies.membrane.equilibrium import MembraneProblem
from softform_core.bodies.membrane.model import membrane_on_mesh
from softform_core.errors import SoftformError
from softform_core.robots import load_robot
from softform_core.robots.description import Material
from softform_core.simulation.newton import NoEquilibriumError, find_equilibria
from softform_core.simulation.sensitivity import equilibrium_sensitivities
from softform_core.simulation.simulated_body import equilibrium_unknowns

pytestmark = pytest.mark.slow

ROBOT = load_robot("mannequin", "surface")
YEOH = Material(law="yeoh", coefficients=[160e3, 1e3, 4e3])
TWO = [
    {"layer": "inner", "turn": [-0.2, 0.15], "height": [0.08, 0.2]},
    {"layer": "middle", "turn": [-0.1, 0.25], "height": [0.12, 0.24]},
]
"""An inner chamber, and a middle one across its border."""


def described(**changes) -> LayeredBody:
    body = ROBOT.body.model_dump(mode="json")
    return LayeredBody.model_validate(body | {"chambers": TWO, "cell": 0.03} | changes)


@pytest.fixture(scope="module")
def two() -> LayeredProblem:
    return described().simulator()


@pytest.fixture(scope="module")
def mannequin() -> LayeredProblem:
    """The mannequin on a coarse mesh."""
    return ROBOT.body.model_copy(update={"cell": 0.02}).simulator()


@pytest.fixture(scope="module")
def inflated(mannequin) -> np.ndarray:
    """Unknowns and what they are in balance with: all chambers, more in the middle layer."""
    return equilibrium_unknowns(mannequin, uneven()[None])[0]


def uneven() -> np.ndarray:
    return ROBOT.actuators_of(np.array([4e3, 6e3, 3e3, 5e3, 2e3, 8e3, 9e3, 7e3, 6e3]))


def pressed(problem: LayeredProblem) -> np.ndarray:
    """Unknowns of a state in which some contacts press and some are open."""
    unknowns = problem.start(np.array([[2e3, 3e3]]))
    unknowns = unknowns + np.random.default_rng(3).normal(scale=3e-5, size=unknowns.shape)
    gaps = contact_gaps(problem.nodes(unknowns[0]), problem.layers.contacts)
    assert 0.2 < (gaps < -1e-6).mean() < 0.8
    return unknowns


def test_the_robot_is_as_the_paper_prints_it():
    body = ROBOT.body
    assert body.size == pytest.approx(0.315)
    assert (len(ROBOT.actuators), ROBOT.degrees_of_freedom) == (15, 9)
    assert {chamber.layer for chamber in body.chambers} == {"inner", "middle"}
    commands = ROBOT.actuators_of(np.arange(9.0))
    for left, right in ((0, 1), (3, 4), (5, 6), (8, 9), (10, 11), (13, 14)):
        assert commands[left] == commands[right]
        assert body.chambers[left].turn == pytest.approx([-turn for turn in body.chambers[right].turn[::-1]])


def test_mesh_lines_run_along_the_borders_of_chambers():
    mesh = mesh_torso(ROBOT.body)
    lines = np.append(mesh.turns, mesh.turns[0] + 1.0)
    for number, chamber in enumerate(ROBOT.body.chambers):
        cells = mesh.chambers[["inner", "middle"].index(chamber.layer)] == number
        width = np.diff(lines)[cells.any(axis=1)].sum()
        height = np.diff(mesh.heights)[cells.any(axis=0)].sum()
        assert (width, height) == pytest.approx((np.ptp(chamber.turn), np.ptp(chamber.height)), abs=1e-9)
    for station in ROBOT.body.core.stations:
        section = torso_points(ROBOT.body.core, np.array([0.0, 0.25, 0.5, 0.75]), np.full(4, station.height))
        assert section[[0, 2], 0] == pytest.approx([station.front, -station.back])
        assert section[[1, 3], 1] == pytest.approx([station.side, -station.side])


def test_gradient_and_hessian_agree_with_finite_differences(two):
    unknowns, pressures = pressed(two), np.array([[2e3, 3e3]])
    gradient, hessian = two.derivatives(unknowns, pressures)
    draw, step = np.random.default_rng(0), 1e-8
    for _ in range(5):
        way = draw.normal(size=gradient.shape)
        ahead, behind = unknowns + step * way, unknowns - step * way
        slope = (two.energy(ahead, pressures) - two.energy(behind, pressures)) / (2.0 * step)
        assert slope == pytest.approx(np.sum(gradient * way), rel=1e-5)
        change = (two.derivatives(ahead, pressures)[0] - two.derivatives(behind, pressures)[0])[0] / (2.0 * step)
        expected = hessian.matrix @ way[0]
        assert np.linalg.norm(change - expected) < 1e-4 * np.linalg.norm(expected)
    difference = hessian.matrix - hessian.matrix.T
    assert np.abs(difference.data).max(initial=0.0) < 1e-9 * np.abs(hessian.matrix.data).max()


def test_contact_measures_the_gap_to_the_plane_under_it():
    """A plane that is turned and moved: the gap does not change; a vertex that slides along it: neither."""
    positions = np.array([[0.3, -0.2, 0.5], [0, 0, 0], [1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0]], dtype=float)
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
    turn *= np.linalg.det(turn)
    contacts = np.arange(6, dtype=np.int32)[None]
    assert contact_gaps(positions @ turn.T + 0.7, contacts) == pytest.approx([0.5])


def test_chambers_share_out_the_space_under_the_cover(two):
    """Domes upon domes: the volumes of all chambers are those between the core and the topmost sheet."""
    layers = two.layers
    vertices = two.nodes(two.start(np.array([[4e3, 2e3]]))[0])
    volumes, gradients = two.volumes(vertices)
    volumes = volumes - two.volumes(layers.rest_vertices)[0]
    assert (volumes > 1e-5).all()
    below = {name: vertices[nodes] for name, nodes in layers.nodes_of_layer.items()}

    def under(points: np.ndarray) -> float:
        corner = points[layers.skin_faces]
        return float(np.einsum("fi,fi->f", corner[:, 0], np.cross(corner[:, 1], corner[:, 2])).sum() / 6.0)

    assert volumes.sum() == pytest.approx(under(below["middle layer"]) - under(below["core"]), rel=2e-2)
    way = np.random.default_rng(2).normal(scale=1e-7, size=vertices.shape)
    change = (two.volumes(vertices + way)[0] - two.volumes(vertices - way)[0]) / 2.0
    assert change == pytest.approx(np.einsum("kvi,vi->k", gradients, way), rel=1e-6)


def test_a_single_clamped_sheet_is_the_membrane():
    x, y = np.linspace(-0.05, 0.05, 11), np.linspace(-0.04, 0.04, 9)
    mesh = MeshQuad.init_tensor(x, y)
    membrane = MembraneProblem(membrane_on_mesh(mesh, np.zeros(80, dtype=int), 0.001, YEOH, prestretch=1.03))
    grid = np.stack(np.meshgrid(x, y, [0.0], indexing="ij"), axis=-1)[:, :, 0]
    plan = Plan("sheet", np.zeros((10, 8), dtype=int), 0.001, 1.03)
    sheet = LayeredProblem(layers_on_grid(grid, False, [plan], 1, YEOH, 2e8))
    pressures = np.array([[3000.0]])
    flat, layered = (equilibrium_unknowns(problem, pressures) for problem in (membrane, sheet))
    of_membrane = zip(mesh.p.T, membrane.points(flat)[0], strict=True)
    expected = {tuple(np.round(place, 6)): moved for place, moved in of_membrane}
    moved = np.array([expected[tuple(np.round(place[:2], 6))] for place in grid.reshape(-1, 3)])
    assert moved[:, 2].max() > 0.005
    np.testing.assert_allclose(sheet.points(layered)[0], moved, atol=1e-9)


def test_sheets_lie_on_each_other_and_do_not_pass(mannequin, inflated):
    """By the described stiffness of contact, and by the true distance to the surface below; nor through themselves."""
    allowed = 2.0 * ROBOT.actuator_max.max() / ROBOT.body.contact_stiffness
    for unknowns in (mannequin.rest, inflated):
        gaps = contact_gaps(mannequin.nodes(unknowns), mannequin.layers.contacts)
        assert -allowed < gaps.min() < 0.0
        assert (gaps < 0.0).mean() > 0.3
    _, inner, middle, cover = mannequin.surfaces(inflated)
    for upper, lower in ((middle, inner), (cover, middle)):
        assert true_gaps(upper.points, lower.points, lower.faces).min() > -1.0e-3
    for sheet in (inner, middle, cover):
        corners = o3d.utility.Vector3dVector(sheet.points), o3d.utility.Vector3iVector(sheet.faces)
        assert not o3d.geometry.TriangleMesh(*corners).is_self_intersecting(), sheet.name
    bulge = np.linalg.norm(cover.points - mannequin.surfaces(mannequin.rest)[-1].points, axis=1)
    assert bulge.max() > 0.01


def test_a_smooth_skin_goes_through_the_vertices_and_is_nearer_to_what_they_stand_for():
    """A grid of an ellipsoid's middle, closed around, whose true surface is known."""
    turns, heights = np.linspace(0.0, 1.0, 24, endpoint=False), np.linspace(-0.6, 0.6, 15)

    def ellipsoid(turn: np.ndarray, height: np.ndarray) -> np.ndarray:
        wide = np.sqrt(1.0 - height**2)
        x, y = np.cos(2.0 * np.pi * turn) * wide, 0.7 * np.sin(2.0 * np.pi * turn) * wide
        return np.stack([x, y, height], axis=-1)

    grid = ellipsoid(*np.meshgrid(turns, heights, indexing="ij"))
    around, upwards = finer_lines(grid, True, 2)
    smooth = np.einsum("au,uvk,bv->abk", around, grid, upwards)
    np.testing.assert_allclose(smooth[::2, ::2], grid, atol=1e-12)
    flat = 0.25 * (grid + np.roll(grid, -1, axis=0))[:, 1:] + 0.25 * (grid + np.roll(grid, -1, axis=0))[:, :-1]
    off = [np.abs(np.linalg.norm(points / [1.0, 0.7, 1.0], axis=-1) - 1.0) for points in (smooth[1::2, 1::2], flat)]
    assert off[0].max() < 0.1 * off[1].max()


def true_gaps(points: np.ndarray, below: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Signed distance (P,) m of points from the surface below, less than 0 within it."""
    scene = o3d.t.geometry.RaycastingScene()
    scene.add_triangles(below.astype(np.float32), faces.astype(np.uint32))
    found = scene.compute_closest_points(points.astype(np.float32))
    away = points - found["points"].numpy()
    normals = found["primitive_normals"].numpy()
    return np.sign(np.einsum("pi,pi->p", away, normals)) * np.linalg.norm(away, axis=1)


def test_equal_pressures_left_and_right_give_a_symmetric_shape(mannequin, inflated):
    turns = mesh_torso(ROBOT.body.model_copy(update={"cell": 0.02})).turns
    mirrored = np.abs((turns[:, None] + turns + 0.5) % 1.0 - 0.5).argmin(axis=1)
    shape = mannequin.surfaces(inflated)[-1].points.reshape(len(turns), -1, 3)
    np.testing.assert_allclose(shape[mirrored] * [1.0, -1.0, 1.0], shape, atol=1e-7)


def test_the_skin_moves_as_the_implicit_function_theorem_says(mannequin, inflated):
    pressures = uneven()[None]
    moves = mannequin.moved_points(inflated[None], equilibrium_sensitivities(mannequin, inflated[None], pressures))
    for index in (2, 9):
        change = 2.0 * np.eye(15)[index]
        ahead, behind = (
            find_equilibria(mannequin, pressures + sign * change, inflated[None]).unknowns for sign in (1.0, -1.0)
        )
        expected = (mannequin.points(ahead) - mannequin.points(behind)) / 4.0
        np.testing.assert_allclose(moves[..., index], expected, atol=2e-2 * np.abs(expected).max())


def test_a_middle_chamber_presses_the_sheet_below_it_onto_the_core(two):
    """Without pressure below it the inner sheet stays near the core, though the middle chamber pulls at its seams."""
    free = equilibrium_unknowns(two, np.array([[4e3, 0.0], [0.0, 4e3]]))
    core = two.surfaces(two.rest)[0].points
    inner = [np.linalg.norm(two.surfaces(one)[1].points - core, axis=1).max() for one in free]
    middle = [np.linalg.norm(two.surfaces(one)[2].points - core, axis=1).max() for one in free]
    assert inner[0] > 0.008
    assert middle[1] > 0.008
    assert inner[1] < 0.5 * middle[1]


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"chambers": [TWO[0], {"layer": "inner", "turn": [0.1, 0.3], "height": [0.1, 0.2]}]}, "c1 and c2 .* overlap"),
        ({"chambers": [TWO[0], {"layer": "inner", "turn": [0.85, 1.1], "height": [0.1, 0.2]}]}, "c1 and c2 .* overlap"),
        ({"chambers": [{"layer": "inner", "turn": [0.0, 0.2], "height": [0.1, 0.32]}]}, "c1 leaves the body"),
        ({"chambers": [{"layer": "inner", "turn": [0.2, 0.1], "height": [0.1, 0.2]}]}, "must rise"),
        ({"chambers": [{"layer": "outer", "turn": [0.0, 0.2], "height": [0.1, 0.2]}]}, "layer"),
        ({"contact_stiffness": 0.0}, "contact_stiffness"),
        ({"cover": {"thickness": 0.001, "prestretch": 0.9}}, "prestretch"),
        ({"core": {"stations": [{"height": 0.1, "side": 1, "front": 1, "back": 1}] * 3}}, "stations must rise"),
    ],
)
def test_bad_descriptions_are_rejected_by_name(changes, complaint):
    with pytest.raises(ValidationError, match=complaint):
        described(**changes)


def test_chambers_may_touch_and_lie_over_each_other():
    beside = {"layer": "inner", "turn": [0.15, 0.3], "height": [0.08, 0.2]}
    assert len(described(chambers=[*TWO, beside]).inputs) == 3


def test_a_chamber_below_two_cells_is_rejected():
    small = {"layer": "inner", "turn": [0.3, 0.34], "height": [0.08, 0.2]}
    with pytest.raises(SoftformError, match="c3 is less than two mesh cells"):
        build_layers(described(chambers=[*TWO, small]))


@pytest.mark.parametrize(("pressures", "complaint"), [([1e3], "2 chambers"), ([1e3, np.nan], "chamber 2 is not a")])
def test_wrong_pressures_are_rejected(two, pressures, complaint):
    with pytest.raises(SoftformError, match=complaint):
        equilibrium_unknowns(two, np.array([pressures]))


def test_a_pressure_beyond_the_range_is_rejected():
    with pytest.raises(SoftformError, match="Pressure"):
        ROBOT.check_commands(1.5 * ROBOT.actuator_max)


def test_a_burst_chamber_is_told_with_the_share_of_the_load(monkeypatch):
    monkeypatch.setattr("softform_core.simulation.newton.SMALLEST_LOAD_STEP", 0.1)  # told roughly, and soon
    rubber = {"law": "neo_hookean", "coefficients": [20e3]}
    problem = described(material=rubber, chambers=TWO[:1]).simulator()
    with pytest.raises(NoEquilibriumError, match="beyond .* % of the load"):
        equilibrium_unknowns(problem, np.array([[20e3]]))
