"""Gradient and Hessian of the total potential, and the sensitivities, against finite differences."""

import numpy as np
import pytest
from equilibria import equilibrium_sensitivity, solve_equilibrium

from softform_core.bodies.membrane.energy import COMPRESSION
from softform_core.bodies.membrane.equilibrium import gradient_and_hessian, total_potential, volumes_and_gradients
from softform_core.bodies.membrane.simulator import RealMembrane, build_membrane
from softform_core.robots import load_robot
from softform_core.robots.description import POSITIVE, Material
from softform_core.simulation.materials import LAWS, shear_modulus

pytestmark = pytest.mark.slow

MATERIALS = [
    Material(law="neo_hookean", coefficients=[1.0e5]),
    Material(law="yeoh", coefficients=[6.0e4, 1.0e3, 4.0e3]),
    Material(law="gent", coefficients=[1.0e5, 30.0]),
]
PRESSURES = np.array([5000.0, 0.0, 1200.0, 3000.0, 4000.0, 700.0, 2500.0, 100.0, 4800.0])


def _small(element: str = "quadrilateral", **reality: object):
    return build_membrane(load_robot("membrane").body, RealMembrane(cells=6, element=element, **reality))


def _crumpled(membrane, seed: int = 3) -> np.ndarray:
    """A shape that is no equilibrium: a dome with every free vertex shaken."""
    rest = membrane.rest_vertices
    shape = rest.copy()
    shape[:, 2] = 0.06 * np.cos(np.pi * rest[:, 0] / 0.32) * np.cos(np.pi * rest[:, 1] / 0.32)
    shake = np.random.default_rng(seed).normal(scale=0.003, size=rest.shape)
    return np.where(membrane.fixed[:, None], shape, shape + shake)


@pytest.mark.parametrize("material", MATERIALS, ids=lambda m: m.law)
@pytest.mark.parametrize("element", ["quadrilateral", "triangle"])
@pytest.mark.parametrize("reality", [{}, {"clamp_stiffness": 3.0e4, "gravity": (0.5, 0.0, -9.81)}], ids=["own", "rig"])
def test_gradient_and_hessian_agree_with_finite_differences(material, element, reality):
    membrane = _small(element, material=material, **reality)
    shape = _crumpled(membrane)
    order = membrane.pattern.order
    gradient, hessian = gradient_and_hessian(membrane, shape, PRESSURES)
    dense = hessian.toarray()
    assert np.abs(dense - dense.T).max() <= 1e-12 * np.abs(dense).max()

    step = 1e-6
    numeric_gradient, numeric_hessian = np.empty(order.size), np.empty((order.size, order.size))
    for column, degree in enumerate(order):
        there, back = shape.copy(), shape.copy()
        there.reshape(-1)[degree] += step
        back.reshape(-1)[degree] -= step
        numeric_gradient[column] = (
            total_potential(membrane, there, PRESSURES) - total_potential(membrane, back, PRESSURES)
        ) / (2 * step)
        numeric_hessian[:, column] = (
            gradient_and_hessian(membrane, there, PRESSURES)[0] - gradient_and_hessian(membrane, back, PRESSURES)[0]
        ) / (2 * step)
    assert np.abs(numeric_gradient - gradient).max() <= 1e-5 * np.abs(gradient).max()
    assert np.abs(numeric_hessian - dense).max() <= 1e-5 * np.abs(dense).max()


@pytest.mark.parametrize("reality", [{}, {"clamp_stiffness": 3.0e4, "gravity": (0.0, 0.0, -9.81)}], ids=["own", "rig"])
def test_sensitivity_agrees_with_finite_differences(reality):
    membrane = _small(**reality)
    equilibrium = solve_equilibrium(membrane, PRESSURES)
    sensitivity = equilibrium_sensitivity(membrane, equilibrium)
    assert sensitivity.shape == (len(membrane.rest_vertices), 3, 9)
    step = 0.1  # Pa; the response of the nearly slack chambers is far from linear
    for chamber in range(9):
        moved = [
            solve_equilibrium(membrane, PRESSURES + sign * step * np.eye(9)[chamber], start=equilibrium.vertices)
            for sign in (1, -1)
        ]
        numeric = (moved[0].vertices - moved[1].vertices) / (2 * step)
        assert np.abs(numeric - sensitivity[:, :, chamber]).max() <= 1e-5 * np.abs(sensitivity).max()


def test_an_equilibrium_that_took_no_iteration_has_the_same_sensitivity():
    membrane = _small()
    found = solve_equilibrium(membrane, PRESSURES)
    again = solve_equilibrium(membrane, PRESSURES, start=found.vertices)
    assert again.iterations == 0
    expected = equilibrium_sensitivity(membrane, found)
    assert np.abs(equilibrium_sensitivity(membrane, again) - expected).max() <= 1e-9 * np.abs(expected).max()


def test_a_slack_flat_sheet_has_no_sensitivity_and_a_taut_one_has():
    slack = _small(prestretch=1.0)
    for start in (None, slack.rest_vertices):
        flat = solve_equilibrium(slack, np.zeros(9), start=start)
        assert np.array_equal(flat.vertices, slack.rest_vertices)
        assert np.isnan(equilibrium_sensitivity(slack, flat)).any()
    taut = _small(prestretch=1.05)
    sensitivity = equilibrium_sensitivity(taut, solve_equilibrium(taut, np.zeros(9)))
    moved = solve_equilibrium(taut, np.eye(9)[4]).vertices - taut.rest_vertices
    assert np.abs(moved - sensitivity[:, :, 4]).max() <= 1e-4 * np.abs(moved).max()


def test_chamber_volumes_are_those_of_a_known_shape():
    membrane = _small()
    lifted = membrane.rest_vertices + [0.0, 0.0, 0.01]
    volumes, gradients = volumes_and_gradients(membrane, lifted)
    assert volumes == pytest.approx(np.full(9, 0.01 * 0.32**2 / 9), rel=1e-12)
    # Volume does not change when a chamber's membrane slides with its rims.
    assert np.abs(gradients[:, :, :2].sum(axis=1)).max() <= 1e-15
    assert gradients[:, :, 2].sum(axis=1) == pytest.approx(np.full(9, 0.32**2 / 9), rel=1e-12)


@pytest.mark.parametrize("material", MATERIALS, ids=lambda m: m.law)
def test_shear_modulus_is_the_energy_of_a_small_even_stretch(material):
    reality = RealMembrane(material=material, wall_stiffness_scale=0.0, prestretch=1.0)
    membrane = build_membrane(load_robot("membrane").body.model_copy(update={"cells": 3}), reality)
    strain = 1e-4
    energy = total_potential(membrane, membrane.rest_vertices * (1.0 + strain), np.zeros(9))
    # Plane stress, Poisson's ratio 1/2: E / (1 - nu) strain^2 = 6 mu strain^2 per volume.
    assert energy / (0.32**2 * 0.002) == pytest.approx(6.0 * shear_modulus(material) * strain**2, rel=1e-3)


def test_a_wrinkled_sheet_is_in_uniaxial_tension_and_a_slack_one_has_next_to_no_energy():
    """Tension field theory: what is narrower than its free width pulls along its length only."""
    membrane = build_membrane(
        load_robot("membrane").body.model_copy(update={"cells": 3}),
        RealMembrane(wall_stiffness_scale=0.0, prestretch=1.0),
    )
    c1, c2, c3 = load_robot("membrane").body.material.coefficients
    along, volume = 1.3, 0.32**2 * 0.002
    j = along**2 + 2.0 / along - 3.0
    free = volume * (c1 * j + c2 * j**2 + c3 * j**3)

    def energy(across: float, first: float = along) -> float:
        return total_potential(membrane, membrane.rest_vertices * [first, across, 1.0], np.zeros(9))

    assert energy(along**-0.5) == pytest.approx(free, rel=1e-12)
    assert energy(0.8) == pytest.approx(free, rel=2e-3)
    assert energy(0.95) > 1.05 * free
    assert energy(0.8, first=0.8) < 2e-3 * volume * 2.0 * c1


@pytest.mark.parametrize(
    ("law", "coefficients"),
    [("yeoh", [1e5]), ("neo_hookean", [-1.0]), ("gent", [1e5, 0.0]), ("gent", [float("nan"), 3.0])],
)
def test_a_material_that_is_no_solid_is_rejected(law, coefficients):
    with pytest.raises(ValueError, match=r"coefficient|finite"):
        Material(law=law, coefficients=coefficients)


def test_each_law_says_which_coefficients_must_be_positive():
    assert POSITIVE.keys() == LAWS.keys()


@pytest.mark.parametrize("element", ["quadrilateral", "triangle"])
def test_the_hessian_is_the_second_variation_that_the_docstring_states(element):
    """The formulas of `assemble`, term by term, as sums over vertices a, b and axes i, j of every quadrature point."""
    material = MATERIALS[1]
    c1, c2, c3 = material.coefficients
    membrane = _small(element, material=material, wall_stiffness_scale=0.0)
    shape, elements, b = _crumpled(membrane), membrane.elements, membrane.gradients
    places = shape[elements]
    f = np.einsum("eai,eqar->eqir", places, b)
    tensor = np.einsum("eqir,eqis->eqrs", f, f)
    inverse, phi = np.linalg.inv(tensor), 1.0 / np.linalg.det(tensor)
    j = np.trace(tensor, axis1=2, axis2=3) + phi - 3.0
    slope, curvature = c1 + 2.0 * c2 * j + 3.0 * c3 * j**2, 2.0 * c2 + 6.0 * c3 * j
    normal = np.cross(f[..., 0], f[..., 1])
    normal /= np.linalg.norm(normal, axis=-1, keepdims=True)
    axes = np.eye(3)

    raised = np.einsum("eqir,eqrs,eqas->eqai", f, inverse, b)  # F C^-1 B_a
    s = 2.0 * (np.einsum("eqir,eqar->eqai", f, b) - phi[..., None, None] * raised)
    second = 2.0 * np.einsum("ij,eqar,eqbr->eqaibj", axes, b, b)
    second += 4.0 * np.einsum("eq,eqai,eqbj->eqaibj", phi, raised, raised)
    second += 2.0 * np.einsum("eq,eqbi,eqaj->eqaibj", phi, raised, raised)
    second -= 2.0 * np.einsum("eq,eqar,eqrs,eqbs,eqi,eqj->eqaibj", phi, b, inverse, b, normal, normal)
    elastic = np.einsum("eq,eqai,eqbj->eqaibj", curvature, s, s) + np.einsum("eq,eqaibj->eqaibj", slope, second)

    (low, high), directions = np.moveaxis(np.linalg.eigvalsh(tensor), -1, 0), np.linalg.eigh(tensor)[1]
    wrinkled = high * low**2 < 1.0
    assert 0.05 < wrinkled.mean() < 0.95
    root = high**-0.5
    k = high + 2.0 * root - 3.0
    taut = high > 1.0
    stretch_slope = np.where(taut, (c1 + 2.0 * c2 * k + 3.0 * c3 * k**2) * (1.0 - root**3), 0.0)
    stretch_curvature = np.where(
        taut, (2.0 * c2 + 6.0 * c3 * k) * (1.0 - root**3) ** 2 + 1.5 * (c1 + 2 * c2 * k + 3 * c3 * k**2) * root**5, 0.0
    )
    d, e = directions[..., 1], directions[..., 0]
    along, across = np.einsum("eqar,eqr->eqa", b, d), np.einsum("eqar,eqr->eqa", b, e)
    fd, fe = np.einsum("eqir,eqr->eqi", f, d), np.einsum("eqir,eqr->eqi", f, e)
    g = 2.0 * np.einsum("eqa,eqi->eqai", along, fd)
    t = np.einsum("eqa,eqi->eqai", along, fe) + np.einsum("eqa,eqi->eqai", across, fd)
    bent = 2.0 * np.einsum("ij,eqa,eqb->eqaibj", axes, along, along)
    bent += 2.0 * np.einsum("eq,eqai,eqbj->eqaibj", 1.0 / (high - low), t, t)
    tension = np.einsum("eq,eqai,eqbj->eqaibj", stretch_curvature, g, g)
    tension += np.einsum("eq,eqaibj->eqaibj", stretch_slope, bent)
    share = np.where(wrinkled, COMPRESSION, 1.0)
    expected = np.einsum("eq,eqaibj->eqaibj", share, elastic) + np.einsum("eq,eqaibj->eqaibj", 1.0 - share, tension)
    expected = np.einsum("eq,e,eqaibj->eaibj", membrane.areas, membrane.thickness, expected)

    curtain = np.stack([b[..., 0] * f[:, :, None, 1, 1] - b[..., 1] * f[:, :, None, 1, 0],
                        f[:, :, None, 0, 0] * b[..., 1] - f[:, :, None, 0, 1] * b[..., 0]], axis=-1)  # fmt: skip
    height = np.einsum("ea,aq->eq", places[..., 2], membrane.shapes)
    twist = np.einsum("eq,eqa,eqb->eqab", height, b[..., 0], b[..., 1])
    twist -= twist.transpose(0, 1, 3, 2)
    volume = np.zeros((*twist.shape[:3], 3, twist.shape[3], 3))
    volume[:, :, :, 2, :, :2] = np.einsum("aq,eqbj->eqabj", membrane.shapes, curtain)
    volume[:, :, :, :2, :, 2] = np.einsum("bq,eqai->eqaib", membrane.shapes, curtain)
    volume[:, :, :, 0, :, 1], volume[:, :, :, 1, :, 0] = twist, -twist
    expected -= np.einsum("eq,e,eqaibj->eaibj", membrane.areas, membrane.pressure_of_element(PRESSURES), volume)

    degrees = (3 * elements[:, :, None] + np.arange(3)).reshape(len(elements), -1)
    dense = np.zeros((shape.size, shape.size))
    np.add.at(dense, (degrees[:, :, None], degrees[:, None, :]), expected.reshape(*degrees.shape, -1))
    order = membrane.pattern.order
    _, hessian = gradient_and_hessian(membrane, shape, PRESSURES)
    assert np.abs(hessian.toarray() - dense[np.ix_(order, order)]).max() <= 1e-10 * np.abs(dense).max()
