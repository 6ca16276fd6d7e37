"""The solid against analytic references, finite differences, and itself."""

import numpy as np
import pytest
from scipy.sparse.linalg import spsolve
from scipy.spatial.transform import Rotation

from softform_core.bodies.elements import TETRAHEDRON_EDGES, TETRAHEDRON_SIDES, TURNED_TRIANGLE
from softform_core.bodies.solid.description import Cells, CrossSection, SolidBody
from softform_core.bodies.solid.energy import strain_energies
from softform_core.bodies.solid.equilibrium import SolidProblem
from softform_core.bodies.solid.mesh import SolidMesh, mesh_section
from softform_core.bodies.solid.model import RealSolid, build_solid, solid_on_mesh
from softform_core.errors import SoftformError
from softform_core.robots import load_robot
from softform_core.robots.description import Material
from softform_core.simulation.newton import find_equilibria, newton
from softform_core.simulation.sensitivity import equilibrium_sensitivities

pytestmark = pytest.mark.slow

COARSE = Cells(chamber=2, rib=2, layers=2)
PRESSURES = np.array([[30e3, 0.0, 10e3, 0.0, 25e3, 25e3]])
MODULUS = 50e3
SOFT = Material(law="neo_hookean", coefficients=[MODULUS])
_NO_FACES = {
    "rectangles": np.zeros((0, 9), dtype=np.int32),
    "cavity_of_rectangle": np.zeros(0, dtype=np.int64),
    "caps": np.zeros((0, 6), dtype=np.int32),
    "cavity_of_cap": np.zeros(0, dtype=np.int64),
}


def described(**fields) -> SolidBody:
    body = load_robot("manipulator").body.model_dump()
    return SolidBody.model_validate(body | {"cells": COARSE.model_dump()} | fields)


@pytest.fixture(scope="module")
def problem() -> SolidProblem:
    return SolidProblem(build_solid(described()))


@pytest.fixture(scope="module")
def equilibrium(problem):
    found = find_equilibria(problem, PRESSURES)
    assert found.failures == [""]
    return found.unknowns


def drawn_out(flat: np.ndarray, triangles: np.ndarray, levels: np.ndarray, **fields) -> SolidMesh:
    """Wedges over triangles (T, 6) of nodes (N, 2) between levels (2 L + 1,)."""
    count, layers = len(flat), len(levels) // 2
    elements = [count * (2 * layer + np.arange(3))[:, None] + triangles[:, None, :] for layer in range(layers)]
    total = layers * len(triangles)
    return SolidMesh(
        nodes=np.column_stack([np.tile(flat, (len(levels), 1)), levels.repeat(count)]),
        elements=np.concatenate(elements).reshape(-1, 18).astype(np.int32),
        is_plate=np.zeros(total, dtype=bool),
        is_wall=np.zeros(total, dtype=bool),
        base=np.arange(0),
        foot=np.arange(0),
        **_NO_FACES | fields,
    )


def grid_section(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and triangles over a grid of (2 m + 1) x (2 n + 1) lines."""
    flat = np.stack(np.meshgrid(x, y, indexing="ij"), axis=-1).reshape(-1, 2)
    at = np.arange(len(flat)).reshape(len(x), len(y))
    triangles = []
    for i in range(0, len(x) - 1, 2):
        for j in range(0, len(y) - 1, 2):
            for one, two, three in (((0, 0), (2, 0), (2, 2)), ((0, 0), (2, 2), (0, 2))):
                corners = np.array([one, two, three])
                middles = (corners + np.roll(corners, -1, axis=0)) // 2
                triangles.append([at[i + a, j + b] for a, b in (*corners, *middles)])
    return flat, np.array(triangles)


def octant_section(cells: int) -> tuple[np.ndarray, np.ndarray]:
    """Directions (N, 3) over an octant of the sphere, and triangles over them, `cells` along each edge."""
    side = 2 * cells + 1
    at = {(i, j): i * side + j for i in range(side) for j in range(side)}
    triangles = []
    for i in range(0, side - 1, 2):
        for j in range(0, side - 1 - i, 2):
            for corners in (((i, j), (i + 2, j), (i, j + 2)), ((i + 2, j), (i + 2, j + 2), (i, j + 2))):
                if max(map(sum, corners)) < side:
                    middles = (np.array(corners) + np.roll(corners, -1, axis=0)) // 2
                    triangles.append([at[one, other] for one, other in (*corners, *middles)])
    used, own = np.unique(triangles, return_inverse=True)
    i, j = used // side, used % side
    places = np.column_stack([side - 1 - i - j, i, j])
    return places / np.linalg.norm(places, axis=1, keepdims=True), own.reshape(-1, 6)


def in_tetrahedra(nodes: np.ndarray, corners: np.ndarray, middle, **fields) -> SolidMesh:
    """Tetrahedra with corners (E, 4) at some of the nodes (N, 3); `middle(nodes, a, b)` lie between nodes a and b."""
    edges = np.sort(corners[:, TETRAHEDRON_EDGES], axis=2).reshape(-1, 2)
    unique, inverse = np.unique(edges, axis=0, return_inverse=True)
    elements = np.column_stack([corners, len(nodes) + inverse.reshape(-1, 6)])
    places = np.concatenate([nodes, middle(nodes, *unique.T)])
    nothing = np.zeros(len(elements), dtype=bool)
    return SolidMesh(
        nodes=places,
        elements=elements.astype(np.int32),
        is_plate=nothing,
        is_wall=nothing,
        base=np.arange(0),
        foot=np.arange(0),
        **_NO_FACES | fields,
    )


def split_wedges(wedges: np.ndarray) -> np.ndarray:
    """Three tetrahedra for each wedge (W, 6) of three corners and those above; neighbours share diagonals."""
    found = []
    for wedge in wedges:
        first = int(np.argmin(wedge))  # the diagonals of its sides start at their lowest node
        turned = np.roll(wedge.reshape(2, 3), -(first % 3), axis=1)
        below, above = turned if first < 3 else turned[::-1]
        a, b, c, d, e, f = *below, *above
        parts = (
            [(a, b, c, f), (a, b, f, e), (a, e, f, d)]
            if min(b, f) < min(c, e)
            else [(a, b, c, e), (a, e, c, f), (a, e, f, d)]
        )
        found += [part if first < 3 else (part[0], part[2], part[1], part[3]) for part in parts]
    return np.array(found)


def small_displacements(problem: SolidProblem, moves: np.ndarray, forces: np.ndarray) -> np.ndarray:
    """Displacements (V, 3) under small forces (V, 3): one linear solve over what `moves` (V, 3)."""
    order = problem.solid.pattern.order
    rows = np.flatnonzero(moves.reshape(-1)[order])
    matrix = problem.derivatives(problem.rest[None], np.zeros((1, 1)))[1].matrix[rows][:, rows]
    displaced = np.zeros(problem.solid.nodes.size)
    displaced[order[rows]] = spsolve(matrix, forces.reshape(-1)[order][rows])
    return displaced.reshape(-1, 3)


def test_volumes_are_exact(problem):
    section = problem.solid
    body = described()
    area = 0.5 * body.cross_section.angle * (body.cross_section.outer**2 - body.cross_section.inner**2)
    volumes, gradients = problem.pressure.volumes(section.nodes), problem.pressure.gradients(section.nodes)
    # Arcs of 45 degrees by parabolas.
    assert volumes == pytest.approx(np.full(6, area * body.segment_length), rel=2e-3)
    assert np.abs(gradients.sum(axis=1)).max() < 1e-9 * np.abs(gradients).sum()  # closed
    turned = section.nodes @ Rotation.from_rotvec([0.3, 1.0, -0.5]).as_matrix().T + [1.0, 2.0, 3.0]
    assert problem.pressure.volumes(turned) == pytest.approx(volumes, rel=1e-9)


def test_a_turn_costs_no_energy(problem):
    solid = problem.solid
    turned = solid.nodes @ Rotation.from_rotvec([0.3, 1.0, -0.5]).as_matrix().T
    energy, least = strain_energies(solid, turned)
    assert abs(energy) < 1e-12
    assert least == pytest.approx(1.0)


@pytest.mark.parametrize("law", [("neo_hookean", [84e3]), ("yeoh", [42e3, 4e3, 9e3]), ("gent", [84e3, 9.0])])
def test_derivatives_agree_with_finite_differences(law):
    material = Material(law=law[0], coefficients=law[1])
    problem = SolidProblem(build_solid(described(), RealSolid(material=material, clamp_stiffness=1e6)))
    random = np.random.default_rng(1)
    x = problem.rest + 2e-5 * random.standard_normal(problem.rest.size)
    gradient, hessian = problem.derivatives(x[None], PRESSURES)
    for direction in random.standard_normal((2, x.size)):
        step = 5e-8 * direction
        ahead, behind = (problem.energy((x + sign * step)[None], PRESSURES)[0] for sign in (1.0, -1.0))
        assert (ahead - behind) / 1e-7 == pytest.approx(gradient[0] @ direction, rel=1e-5)
        one, other = (problem.derivatives((x + sign * step)[None], PRESSURES)[0] for sign in (1.0, -1.0))
        expected = hessian.matrix @ direction
        assert np.abs((one - other)[0] / 1e-7 - expected).max() < 1e-6 * np.abs(expected).max()
    matrix = hessian.matrix
    assert np.abs((matrix - matrix.T).data).max() < 1e-9 * np.abs(matrix.data).max()


def test_the_stresses_that_a_small_step_leads_to_are_those_there(problem, equilibrium):
    """So Newton's method converges quadratically although its matrix is not the Hessian on the way."""
    direction = np.random.default_rng(2).uniform(-1.0, 1.0, equilibrium.shape)
    exact = problem.derivatives(equilibrium, PRESSURES)[1].matrix
    differences = []
    for size in (1e-5, 5e-6):
        before = equilibrium - size * direction
        mixed = problem.derivatives_after(equilibrium, before, PRESSURES)[1].matrix
        differences.append(np.abs((mixed - exact).data).max())
    assert differences[0] > 0.0
    assert differences[1] < 0.3 * differences[0]  # of second order


def test_lame_tube():
    """A thick tube in plane strain under a small pressure inside: Lame's displacement at both walls."""
    inner, outer, length, pressure, nu = 0.010, 0.020, 0.005, 50.0, 0.49
    angles = np.linspace(0.0, 0.5 * np.pi, 9)  # a quarter
    radii = np.linspace(inner, outer, 9)
    flat, triangles = grid_section(radii, angles)
    flat = flat[:, :1] * np.column_stack([np.cos(flat[:, 1]), np.sin(flat[:, 1])])
    levels = np.linspace(0.0, length, 3)
    mesh = drawn_out(flat, triangles, levels)
    solid = solid_on_mesh(mesh, SOFT, poisson_ratio=nu, cavities=1, is_fixed=np.zeros(len(mesh.nodes), dtype=bool))
    problem = SolidProblem(solid)
    nodes = solid.nodes
    # The pressure as forces on the inner wall.
    moves = np.abs(nodes) > 1e-12
    moves[:, 2] = False
    rim = np.flatnonzero(np.abs(np.hypot(nodes[:, 0], nodes[:, 1]) - inner) < 1e-9)
    rim = rim[np.lexsort([np.arctan2(nodes[rim, 1], nodes[rim, 0]), nodes[rim, 2]])].reshape(3, 9)
    force = np.zeros(nodes.shape)
    simpson = np.array([1.0, 4.0, 1.0]) / 6.0
    for level, share in zip(rim, simpson, strict=True):
        for first in range(0, 8, 2):
            arc = level[first : first + 3]
            for node, part in zip(arc, simpson, strict=True):
                normal = nodes[node, :2] / inner
                force[node, :2] += pressure * length * share * part * inner * np.pi / 8.0 * normal
    displaced = small_displacements(problem, moves, force)
    radius = np.hypot(nodes[:, 0], nodes[:, 1])
    radial = (displaced[:, :2] * nodes[:, :2]).sum(axis=1) / radius
    factor = pressure * inner**2 / (outer**2 - inner**2) / (2.0 * MODULUS)
    for wall in (inner, outer):
        exact = factor * ((1.0 - 2.0 * nu) * wall + outer**2 / wall)
        at = np.abs(radius - wall) < 1e-9
        assert radial[at].mean() == pytest.approx(exact, rel=0.01)
        assert radial[at] == pytest.approx(np.full(at.sum(), exact), rel=0.03)


def inflated_sphere(mesh: SolidMesh) -> tuple[SolidProblem, np.ndarray, np.ndarray]:
    """An eighth of a thick sphere (10 to 20 mm) under 50 Pa: its problem, displacements (V, 3), and Lame's (V,)."""
    inner, outer, pressure, nu = 0.010, 0.020, 50.0, 0.49
    solid = solid_on_mesh(mesh, SOFT, poisson_ratio=nu, cavities=1, is_fixed=np.zeros(len(mesh.nodes), dtype=bool))
    problem = SolidProblem(solid)
    forces = pressure * problem.pressure.gradients(solid.nodes)[0]
    radius = np.linalg.norm(solid.nodes, axis=1)
    factor = pressure * inner**3 / (outer**3 - inner**3) / (2.0 * MODULUS)
    exact = factor * ((1.0 - 2.0 * nu) / (1.0 + nu) * radius + outer**3 / (2.0 * radius**2))
    return problem, small_displacements(problem, np.abs(solid.nodes) > 1e-12, forces), exact


def test_lame_sphere():
    """A thick sphere under a small pressure in its cavity: Lame's displacement through the wall."""
    inner, outer = 0.010, 0.020
    directions, triangles = octant_section(4)
    radii = np.linspace(inner, outer, 9)
    inside = {"caps": triangles.astype(np.int32), "cavity_of_cap": np.zeros(len(triangles), dtype=np.int64)}
    mesh = drawn_out(directions[:, :2], triangles, radii, **inside)
    mesh = mesh._replace(nodes=(radii[:, None, None] * directions).reshape(-1, 3))
    problem, displaced, exact = inflated_sphere(mesh)
    nodes, radius = mesh.nodes, np.linalg.norm(mesh.nodes, axis=1)
    # The planes of symmetry go through the origin: they add nothing to the volume.
    assert problem.pressure.volumes(nodes) == pytest.approx(np.pi / 6.0 * inner**3, rel=2e-3)
    radial = (displaced * nodes).sum(axis=1) / radius
    assert radial == pytest.approx(exact, rel=0.01)
    assert np.abs(displaced - (exact / radius)[:, None] * nodes).max() < 0.01 * exact.max()


def sphere_in_tetrahedra(cells: int) -> SolidMesh:
    """An eighth of the same sphere, `cells` along each edge, and its cavity."""
    directions, triangles = octant_section(cells)
    corners, own = np.unique(triangles[:, :3], return_inverse=True)
    count = len(corners)
    nodes = (np.linspace(0.010, 0.020, cells + 1)[:, None, None] * directions[corners]).reshape(-1, 3)
    below = count * np.arange(cells)[:, None, None] + own.reshape(-1, 3)

    def middle(nodes, a, b):
        between = nodes[a] + nodes[b]
        radius = 0.5 * (np.linalg.norm(nodes[a], axis=1) + np.linalg.norm(nodes[b], axis=1))
        return between * (radius / np.linalg.norm(between, axis=1))[:, None]

    mesh = in_tetrahedra(nodes, split_wedges(np.concatenate([below, below + count], axis=2).reshape(-1, 6)), middle)
    sides = mesh.elements[:, TETRAHEDRON_SIDES].reshape(-1, 6)
    caps = sides[(np.linalg.norm(mesh.nodes[sides], axis=2) < 0.010 + 1e-9).all(axis=1)][:, TURNED_TRIANGLE]
    return mesh._replace(caps=caps, cavity_of_cap=np.zeros(len(caps), dtype=np.int64))


def test_lame_sphere_in_tetrahedra():
    """As above; twice as many elements along each edge, and it is a quarter as far off."""
    worst = []
    for cells in (2, 4, 6):
        mesh = sphere_in_tetrahedra(cells)
        problem, displaced, exact = inflated_sphere(mesh)
        assert problem.pressure.volumes(mesh.nodes) == pytest.approx(np.pi / 6.0 * 0.010**3, rel=2e-2)
        outwards = mesh.nodes / np.linalg.norm(mesh.nodes, axis=1, keepdims=True)
        worst.append(np.linalg.norm(displaced - exact[:, None] * outwards, axis=1).max() / exact.max())
    assert worst[1] < 0.3 * worst[0]
    assert worst[2] < 0.012


def test_derivatives_of_tetrahedra_agree_with_finite_differences():
    mesh = sphere_in_tetrahedra(2)
    mesh = mesh._replace(is_wall=np.ones(len(mesh.elements), dtype=bool))
    solid = solid_on_mesh(
        mesh, SOFT, poisson_ratio=0.49, cavities=1, is_fixed=np.zeros(len(mesh.nodes), dtype=bool), fibre_modulus=1e5
    )
    problem, pressures = SolidProblem(solid), np.array([[5e3]])
    random = np.random.default_rng(1)
    x = problem.rest + 1e-4 * random.standard_normal(problem.rest.size)
    gradient, hessian = problem.derivatives(x[None], pressures)
    direction = random.standard_normal(x.size)
    step = 1e-7 * direction
    ahead, behind = (problem.energy((x + sign * step)[None], pressures)[0] for sign in (1.0, -1.0))
    assert (ahead - behind) / 2e-7 == pytest.approx(gradient[0] @ direction, rel=1e-5)
    one, other = (problem.derivatives((x + sign * step)[None], pressures)[0] for sign in (1.0, -1.0))
    expected = hessian.matrix @ direction
    assert np.abs((one - other)[0] / 2e-7 - expected).max() < 1e-6 * np.abs(expected).max()


def test_tetrahedra_inside_out_are_rejected():
    mesh = sphere_in_tetrahedra(2)
    turned = mesh._replace(elements=mesh.elements[:, [0, 2, 1, 3, 6, 5, 4, 7, 9, 8]])
    with pytest.raises(SoftformError, match="turns inside out: 24 of 24 elements do"):
        solid_on_mesh(turned, SOFT, poisson_ratio=0.49, cavities=1, is_fixed=np.zeros(len(mesh.nodes), dtype=bool))


def test_cantilever():
    """A slender beam under its weight across: Timoshenko's deflection. Full integration bends 6 % less."""
    side, length, nu = 0.010, 0.400, 0.49
    flat, triangles = grid_section(np.linspace(0.0, side, 3), np.linspace(0.0, side, 3))
    mesh = drawn_out(flat, triangles, np.linspace(0.0, length, 65))
    fixed = np.abs(mesh.nodes[:, 2]) < 1e-12
    gravity, density = 1e-4, 1000.0
    solid = solid_on_mesh(
        mesh, SOFT, poisson_ratio=nu, density=density, gravity=(-gravity, 0.0, 0.0), cavities=1, is_fixed=fixed
    )
    problem = SolidProblem(solid)
    found = find_equilibria(problem, np.zeros((1, 1)))
    assert found.failures == [""]
    end = problem.points(found.unknowns)[0][np.abs(solid.nodes[:, 2] - length) < 1e-12]
    deflection = side / 2.0 - end[:, 0].mean()
    young, area = 2.0 * MODULUS * (1.0 + nu), side**2
    line_load = density * gravity * area
    exact = line_load * length**4 / (8.0 * young * side**4 / 12.0) + line_load * length**2 / (
        2.0 * MODULUS * area / 1.2
    )
    assert deflection == pytest.approx(exact, rel=0.02)


def test_newton_is_fast(problem):
    found = newton(problem, problem.start(PRESSURES), PRESSURES)
    assert found.failures == [""]
    assert found.iterations[0] <= 9


def test_sensitivities_agree_with_finite_differences(problem, equilibrium):
    moves = problem.moved_points(equilibrium, equilibrium_sensitivities(problem, equilibrium, PRESSURES))[0]
    for chamber in (0, 4):
        change = np.zeros_like(PRESSURES)
        change[0, chamber] = 20.0
        ahead, behind = (find_equilibria(problem, PRESSURES + sign * change, equilibrium) for sign in (1.0, -1.0))
        assert ahead.failures == behind.failures == [""]
        difference = (problem.points(ahead.unknowns) - problem.points(behind.unknowns))[0] / 40.0
        assert np.abs(difference - moves[..., chamber]).max() < 1e-4 * np.abs(moves[..., chamber]).max()


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("angle", 2.2, "overlap"),
        ("outer", 0.026, "leaves the body"),
        ("outer", 0.0248, "radius - outer is 0.2 mm, too thin to mesh"),
        ("inner", 0.0199, "outer - inner is 0.1 mm, too thin"),
        ("angle", 2.05, "the rib that angle leaves at inner is 0.36 mm"),
    ],
)
def test_impossible_cross_sections_name_the_field(field, value, message):
    section = described().cross_section.model_dump()
    with pytest.raises(ValueError, match=message):
        CrossSection.model_validate(section | {field: value})


def test_a_mesh_that_turns_inside_out_is_rejected():
    with pytest.raises(SoftformError, match="turns inside out"):
        build_solid(described(), RealSolid(chamber_shift=[0.006, 0.0, 0.0]))


def test_plates_need_room():
    with pytest.raises(ValueError, match="leaves no room"):
        described(plate=0.09)


def test_the_section_mesh_is_its_own_image():
    section = described().cross_section
    nodes = mesh_section(section, Cells(chamber=4, rib=2, layers=2)).nodes
    for image in (
        nodes * [1.0, -1.0],
        Rotation.from_euler("z", 120.0, degrees=True).apply(np.c_[nodes, 0 * nodes[:, 0]])[:, :2],
    ):
        assert np.abs(nodes[:, None] - image).sum(axis=2).min(axis=1).max() < 1e-12
