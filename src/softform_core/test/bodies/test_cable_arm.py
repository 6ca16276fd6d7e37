"""Arms with cables: derivatives, what an arm weighs and how it stretches, and joint steps on a small one."""

import numpy as np
import pytest
from pydantic import ValidationError
from small_arm import PULLS, problem, small

from softform_core.bodies.cable_arm import kernels
from softform_core.bodies.cable_arm.mesh import mesh_arm
from softform_core.bodies.cable_arm.simulator import RealCableArm, build_arm
from softform_core.errors import SoftformError
from softform_core.simulation.block_tridiagonal import BlockTridiagonalHessian
from softform_core.simulation.hessian import UpdatedHessian
from softform_core.simulation.newton import NoEquilibriumError, find_equilibria
from softform_core.simulation.sensitivity import equilibrium_sensitivities
from softform_core.simulation.tracking import Balance, advanced, linearised, rebalanced


def balanced(values: np.ndarray, start: np.ndarray | None = None) -> np.ndarray:
    """Unknowns (1, m), closer to balance than `find_equilibria` ends: differences of them are taken."""
    found = find_equilibria(problem(), values, start)
    assert found.failures == [""]
    x = found.unknowns
    for _ in range(2):
        gradient, hessian = problem().derivatives(x, values)
        x = x - hessian.factorised().solve(gradient[..., None])[..., 0]
    return x


def test_an_energy_is_nil_at_rest_and_has_lames_constants_for_small_strains():
    arm = build_arm(small())
    shear, bulk = 0.75 * arm.shear[0], arm.bulk[0] - 0.625 * arm.shear[0]  # of Lame
    assert bulk == pytest.approx(2.0 * shear * 0.3 / (1.0 - 2.0 * 0.3))
    elements = (
        arm.mesh.elements,
        arm.slopes,
        arm.volumes,
        np.full_like(arm.shear, arm.shear[0]),
        arm.bulk * 0 + arm.bulk[0],
    )
    volume, nodes = arm.volumes.sum(), arm.mesh.nodes
    assert kernels.strain_energy(nodes, *elements)[0] == pytest.approx(0.0, abs=1e-12 * shear * volume)
    for strain in (np.diag([1.0, 1.0, 1.0]), np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0.0]]), np.diag([1.0, 0, 0])):
        energy = kernels.strain_energy(nodes @ (np.eye(3) + 1e-5 * strain).T, *elements)[0]
        linear = shear * np.sum(strain**2) + 0.5 * bulk * np.trace(strain) ** 2
        assert energy == pytest.approx(1e-10 * linear * volume, rel=1e-3)


def test_the_mesh_fills_the_arm_and_every_prism_is_joined_to_its_neighbours():
    mesh = mesh_arm(small(rings=3))
    edges = mesh.nodes[mesh.elements[:, 1:]] - mesh.nodes[mesh.elements[:, :1]]
    volumes = np.linalg.det(edges) / 6.0
    polygon = 0.5 * 18 * np.sin(2.0 * np.pi / 18) * 0.03**2
    assert volumes.min() > 0.0 and volumes.sum() == pytest.approx(polygon * 0.24)
    sides = np.sort(mesh.elements[:, [(0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3)]].reshape(-1, 3), axis=1)
    times = np.unique(sides, axis=0, return_counts=True)[1]
    assert times.max() == 2 and (times == 1).sum() == len(mesh.faces) + 2 * 54  # the side, and both ends


def test_the_blocks_solve_as_the_whole_matrix_does():
    random = np.random.default_rng(0)
    count, width = 5, 6
    whole = np.zeros((30, 30))
    for layer in range(count - 1):
        rows = slice(6 * layer, 6 * layer + 12)
        part = random.standard_normal((12, 12))
        whole[rows, rows] += part @ part.T + np.eye(12)
    blocks = whole.reshape(count, width, count, width)
    diagonal = np.stack([blocks[one, :, one] for one in range(count)])
    below = np.stack([blocks[one + 1, :, one] for one in range(count - 1)])
    hessian, load = BlockTridiagonalHessian(diagonal, below), random.standard_normal((1, 30, 4))
    factor = hessian.factorised()
    assert np.allclose(hessian.times(load[..., 0]), load[..., 0] @ whole)
    assert np.allclose(factor.solve(load)[0], np.linalg.solve(whole, load[0]))
    assert np.allclose(factor.solve(load[..., :1])[0], np.linalg.solve(whole, load[0, :, :1]))
    assert np.prod(factor.pivots) == pytest.approx(np.linalg.det(whole))
    indefinite = hessian.shifted(np.array([-np.linalg.eigvalsh(whole)[0] - 1e-3])).factorised()
    assert indefinite.pivots.min() < 0.0 and np.isnan(indefinite.solve(load)).all()
    assert np.isnan(BlockTridiagonalHessian(diagonal * np.nan, below).factorised().solve(load)).all()
    columns, weights = random.standard_normal((30, 2)), np.array([2.0, 3.0])
    updated = UpdatedHessian(hessian, columns, weights).factorised()
    joined = whole + columns * weights @ columns.T
    assert np.allclose(updated.solve(load)[0], np.linalg.solve(joined, load[0]))
    assert np.allclose(updated.by_products, np.linalg.solve(joined, columns * weights))
    # What only its products make positive definite, and what they do not.
    values, vectors = np.linalg.eigh(whole)
    shift = -0.5 * (values[1] + values[2])
    lowered, lowest = hessian.shifted(np.array([shift])), np.ascontiguousarray(vectors[:, :2])
    held = whole + shift * np.eye(30) + 10.0 * values[-1] * lowest @ lowest.T
    stands = UpdatedHessian(lowered, lowest, np.full(2, 10.0 * values[-1])).factorised()
    assert np.allclose(stands.solve(load)[0], np.linalg.solve(held, load[0])) and stands.pivots.min() > 0.0
    falls = UpdatedHessian(lowered, lowest[:, :1].copy(), np.full(1, 10.0 * values[-1])).factorised()
    assert np.isnan(falls.solve(load)).all() and (falls.pivots < 0.0).sum() == 1


def test_direct_and_adjoint_sensitivities_are_those_of_differences_and_of_each_other():
    x = balanced(PULLS)
    sensitivities = equilibrium_sensitivities(problem(), x, PULLS)
    joint = linearised(problem(), Balance(x, PULLS))
    assert np.abs(joint.by_actuators - sensitivities).max() < 1e-10 * np.abs(sensitivities).max()
    for cable in range(6):
        step = 2e-6 * np.eye(6)[cable]
        ahead, further, behind, back = (balanced(PULLS + times * step, x) for times in (1, 2, -1, -2))
        slope = (8.0 * (ahead - behind) - (further - back)) / (12.0 * 2e-6)
        assert np.abs(slope[0] - sensitivities[0, :, cable]).max() < 1e-6 * np.abs(sensitivities).max()
    # O = |p - p'|^2 of one point; the adjoint (paper 002, Sec. II-B) with the sign that its print lacks.
    tip = problem().points(x)[0, -1]
    by_points = 2.0 * (tip - [0.05, 0.0, 0.2])
    moved = problem().moved_points(x, np.eye(x.shape[1])[None])[0, -1]
    multiplier = joint.factor.solve((by_points @ moved)[None, :, None])
    adjoint = -multiplier[0, :, 0] @ problem().load_derivative(x, PULLS)[0]
    direct = by_points @ problem().moved_points(x, sensitivities)[0, -1]
    assert np.abs(adjoint - direct).max() < 1e-10 * np.abs(direct).max()


def test_cables_that_all_pull_alike_shorten_the_arm_and_one_bends_it_to_its_side():
    body = problem()
    alike = body.points(find_equilibria(body, np.full((1, 6), 0.01)).unknowns)[0, -1]
    assert np.linalg.norm(alike[:2]) < 1e-4 and alike[2] == pytest.approx(0.22, abs=0.004)
    bent = body.points(find_equilibria(body, np.array([[0.01, -0.01, -0.01, -0.02, -0.02, -0.02]])).unknowns)[0, -1]
    assert bent[0] > 0.02 and abs(bent[1]) < 0.1 * bent[0]
    loads = body.tendon_loads(find_equilibria(body, np.full((1, 6), -0.01)).unknowns, np.full((1, 6), -0.01))
    assert (loads.tension == 0.0).all() and (loads.stretch < 0.0).all()


def test_joint_steps_end_where_the_equilibrium_is():
    x = balanced(PULLS)
    at, wanted, gaps = Balance(x, PULLS), PULLS + [[0.003, 0.0, 0.0, 0.003, 0.0, 0.0]], []
    for _ in range(6):
        at, gap = advanced(problem(), linearised(problem(), at), wanted)
        gaps.append(gap)
    assert 0.0 < gaps[0] < 0.015 and gaps[-1] < 1e-8
    assert np.abs(at.unknowns - balanced(wanted, x)).max() < 1e-8


def test_a_step_that_is_carried_along_the_arm_keeps_its_layers_as_they_are():
    arm = problem().arm
    nodes, width = arm.mesh.nodes, arm.mesh.width
    turn = np.array([0.0, 1.2, 0.0])  # of the tip: all layers turn in proportion to their height
    step = np.cross(turn * nodes[:, 2:] / 0.24, nodes - [0.0, 0.0, 1.0] * nodes) + np.cross(turn, [0, 0, 1]) * (
        nodes[:, 2:] ** 2 / 0.48
    )
    moved = kernels.moved_by_layers(nodes, np.ascontiguousarray(step), width)
    centres, layers = moved.reshape(-1, width, 3).mean(axis=1), moved.reshape(-1, width, 3)
    assert np.linalg.norm(np.diff(centres, axis=0), axis=1) == pytest.approx(0.024, rel=1e-3)
    radii = np.linalg.norm(layers - centres[:, None], axis=2)
    assert radii == pytest.approx(np.linalg.norm(nodes[:width, :2], axis=1)[None].repeat(len(layers), 0), abs=1e-9)
    straight = nodes + step
    assert np.linalg.norm(np.diff(straight.reshape(-1, width, 3).mean(axis=1), axis=0), axis=1).max() > 0.03
    assert centres[-1] == pytest.approx([0.2 * (1 - np.cos(1.2)), 0.0, 0.2 * np.sin(1.2)], abs=2e-3)  # an arc


def test_what_is_far_from_balance_goes_there_by_steps_of_one_factor():
    at = Balance(balanced(PULLS), PULLS + 0.01)
    energies = []
    for _ in range(30):
        at, length = rebalanced(problem(), linearised(problem(), at))
        energies.append(problem().energy(*at)[0])
    assert length < 1e-6 and (np.diff(energies) <= 1e-12).all()


def test_a_shape_that_is_no_number_is_told():
    with pytest.raises(NoEquilibriumError, match="not stable"):
        linearised(problem(), Balance(np.full((1, len(problem().rest)), np.nan), PULLS))


def test_a_cable_that_is_pulled_by_its_whole_section_is_told():
    found = find_equilibria(problem(), np.array([[0.12, 0.0, 0.0, 0.0, 0.0, 0.0]]))
    assert "elements turn inside out beyond" in found.failures[0]


def test_a_reality_differs_by_what_it_says():
    heavy = small().real_simulator(RealCableArm(payload=0.2))
    soft = small().real_simulator(RealCableArm(section_scale=[1.0, 0.5]))
    still = find_equilibria(problem(), np.full((1, 6), -0.02))
    for other in (heavy, soft):
        found = find_equilibria(other, np.full((1, 6), -0.02))
        assert other.points(found.unknowns)[0, -1, 2] > problem().points(still.unknowns)[0, -1, 2] + 1e-4
    assert heavy.arm.weight.sum() == pytest.approx(problem().arm.weight.sum() + 0.2 * 9.81)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"cable_circle": 0.028}, "within the mesh"),
        ({"material": {"law": "yeoh", "coefficients": [1e4, 1.0, 1.0]}}, "neo_hookean"),
        ({"sections": [{"length": 0.1, "layers": 4}]}, "nothing would move"),
    ],
)
def test_an_arm_that_cannot_be_is_told(fields, told):
    with pytest.raises(ValidationError, match=told):
        small(**fields)


def test_a_cable_that_a_reality_leads_out_of_the_arm_is_told():
    with pytest.raises(SoftformError, match="leaves the arm"):
        small().real_simulator(RealCableArm(cable_shift=0.05))
