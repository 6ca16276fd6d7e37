"""Freeform bodies between grips: elements that turn, what they cannot have, and how the true one differs."""

import numpy as np
import pytest
from pydantic import ValidationError

from softform_core.bodies.freeform.description import FreeformBody
from softform_core.bodies.freeform.simulator import RealFreeform, Relief, convoluted, real_simulator, simulator
from softform_core.errors import SoftformError
from softform_core.simulation.newton import find_equilibria

GRIPS = [
    {"load": "grip", "name": "left", "begin": (-1, -1, 0), "end": (1, 1, 0.02)},
    {"load": "grip", "name": "right", "begin": (-1, -1, 0.08), "end": (1, 1, 0.1)},
]
BLOCK = {
    "kind": "freeform",
    "shape": [{"part": "box", "begin": (-0.02, -0.02, 0), "end": (0.02, 0.02, 0.1)}],
    "support": "none",
    "loads": GRIPS,
    "elements": "corotational",
    "mesh_size": 0.02,
    "density": 30.0,
    "material": {"law": "neo_hookean", "coefficients": [1e5]},
    "poisson_ratio": 0.3,
    "gravity": (0, 0, 0),
}


def block(**fields) -> FreeformBody:
    return FreeformBody.model_validate(BLOCK | fields)


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"support": "base"}, "grips alone: no support"),
        ({"fibre_modulus": 1e4}, "no fibres"),
        ({"loads": [*GRIPS, {"load": "cable", "name": "t", "runs": [[(0, 0, 0), (0, 0, 0.1)]]}]}, "no cables"),
    ],
)
def test_what_turning_elements_cannot_have_is_told(fields, complaint):
    with pytest.raises(ValidationError, match=complaint):
        block(**fields)


def test_a_description_of_before_stays_as_it_is():
    quadratic = block(elements="quadratic")
    assert "elements" not in quadratic.model_dump()
    assert FreeformBody.model_validate(quadratic.model_dump()) == quadratic
    assert block().model_dump()["elements"] == "corotational"


def test_they_bend_as_quadratic_elements_do():
    """Displacements lead it, so that even coarse linear elements, too stiff, take nearly the same shape."""
    poses = np.array([[0, 0, 0.004, 0, 0.2, 0, 0, 0, -0.004, 0, -0.2, 0]])
    turning, quadratic = simulator(block()), simulator(block(elements="quadratic"))
    ours, theirs = (find_equilibria(each, poses) for each in (turning, quadratic))
    assert ours.failures == theirs.failures == [""]
    nodes = turning.nodes(ours.unknowns[0])
    same = quadratic.weights_of(turning.rest_nodes) @ quadratic.nodes(theirs.unknowns[0])
    moved = np.abs(nodes - turning.rest_nodes).max()
    assert np.abs(nodes - same).max() < 0.1 * moved
    pulls = [each.wrenches(found.unknowns[0], poses[0]) for each, found in ((turning, ours), (quadratic, theirs))]
    for pair in pulls:
        assert pair[0] + pair[1] == pytest.approx(np.r_[np.zeros(3), (pair[0] + pair[1])[3:]], abs=1e-3)


def test_an_uneven_body_is_stiffer_here_and_softer_there():
    even = real_simulator(block(), RealFreeform(mesh_scale=1.5)).solid
    uneven = real_simulator(block(), RealFreeform(mesh_scale=1.5, uneven=0.5, uneven_seed=2)).solid
    share = uneven.bulk / even.bulk
    assert (np.abs(share - 1.0) <= 0.5).all() and np.ptp(share) > 0.05
    assert uneven.coefficients[:, 0] / even.coefficients[:, 0] == pytest.approx(share)


def test_a_relief_has_hollows_of_its_depth_and_leaves_the_other_side_flat():
    nodes = real_simulator(block(), RealFreeform(mesh_scale=0.5)).solid.nodes
    moved = convoluted(nodes, Relief(axis="y", depth=0.01, pitch=0.04))
    upper, lower = nodes[:, 1] == nodes[:, 1].max(), nodes[:, 1] == nodes[:, 1].min()
    assert np.ptp(moved[upper, 1]) == pytest.approx(0.01, rel=0.05)
    assert moved[lower] == pytest.approx(nodes[lower])
    with pytest.raises(SoftformError, match="go through a body"):
        convoluted(nodes, Relief(axis="y", depth=0.04, pitch=0.04))
