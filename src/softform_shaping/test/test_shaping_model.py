"""The model of a held object: balance, sensitivities, pins, stress, and what is no such object."""

import numpy as np
import pytest
from held_block import BENT
from scipy.sparse import csr_matrix
from scipy.spatial.transform import Rotation

from softform_core.errors import SoftformError
from softform_core.simulation.newton import NoEquilibriumError, find_equilibria
from softform_shaping.guard import StressGuard
from softform_shaping.material_belief import MaterialBelief, Spreads
from softform_shaping.model import HeldModel
from softform_shaping.poses import limited, moved, pose_variation


def test_a_variation_brings_poses_to_others_and_back():
    random = np.random.default_rng(0)
    old, new = random.uniform(-0.5, 0.5, (2, 12))
    assert moved(old, pose_variation(new, old)) == pytest.approx(new)
    assert pose_variation(old, old) == pytest.approx(np.zeros(12))
    step = limited(np.full(12, 0.3), 0.01, 0.1)
    assert np.linalg.norm(step[:3]) <= 0.01 + 1e-12 and np.linalg.norm(step[3:6]) <= 0.1
    assert limited(1e-3 * np.ones(12), 0.01, 0.1) == pytest.approx(1e-3 * np.ones(12))


def test_shapes_step_by_step_are_those_that_newtons_method_finds_at_once(model):
    at_once = find_equilibria(model.body, BENT[None])
    here = model.rest
    factors = 0
    for share in np.linspace(0.1, 1.0, 10):
        here = model.shape(share * BENT, here)
        factors += here.factors
    assert np.abs(here.nodes - model.body.nodes(at_once.unknowns[0])).max() < 1e-6
    assert factors <= 5, "the factor does not serve for the next shape"


def test_a_rigid_motion_of_both_grippers_moves_the_object_rigidly_and_without_stress(model):
    turn = np.array([0.1, -0.2, 0.6])
    rotation = np.asarray(moved(np.zeros(12), np.tile(np.r_[0, 0, 0, turn], 2)))
    centres = np.array([[0.0, 0.0, 0.005], [0.0, 0.0, 0.195]])
    matrix = Rotation.from_rotvec(turn).as_matrix()
    for side in range(2):
        rotation[6 * side : 6 * side + 3] = matrix @ centres[side] - centres[side]
    shape = model.shape(rotation)
    assert np.abs(shape.nodes - model.rest_nodes @ matrix.T).max() < 1e-6
    assert model.stresses(shape).max() < 1e-3 * model.body.modulus


def test_a_stretched_bar_has_the_stress_of_its_strain(model):
    """Away from the grips, where the sides are free: E times the strain of the middle."""
    poses = np.zeros(12)
    poses[8] = 0.002
    shape = model.shape(poses)
    z = model.rest_nodes[:, 2]
    low, high = (np.abs(z - at) < 1e-9 for at in (0.075, 0.125))
    strain = (shape.nodes[high, 2].mean() - shape.nodes[low, 2].mean()) / 0.05 - 1.0
    middles = model.rest_nodes[model.tetrahedra].mean(axis=1)
    young = 2.0 * model.body.modulus * 1.3
    inner = np.abs(middles[:, 2] - 0.1) < 0.02
    assert np.median(model.stresses(shape)[inner]) == pytest.approx(young * strain, rel=0.05)


def test_sensitivities_are_those_of_differences(model):
    shape = model.shape(BENT)
    jacobian = model.sensitivity(shape)
    step = 1e-4 * np.random.default_rng(1).standard_normal(12)
    ahead, behind = (model.shape(moved(BENT, sign * step), shape).nodes for sign in (1.0, -1.0))
    expected = 0.5 * (ahead - behind)
    assert np.abs(jacobian @ step - expected).max() < 1e-3 * np.abs(expected).max()


def test_shapes_follow_the_material_as_its_sensitivities_say(model):
    material = MaterialBelief(model.body, Spreads())
    random = np.random.default_rng(4)
    theta = 0.5 * material.prior * random.standard_normal(len(material.prior))
    believed = model.of(material.body(theta))
    shape = believed.shape(BENT)
    by_theta = believed.sensitivities(shape, material.forces(believed.body, shape.unknowns))[1]
    for index, size in enumerate(material.prior):
        step = np.zeros(len(theta))
        step[index] = 0.05 * size
        ahead, behind = (
            believed.of(material.body(theta + sign * step)).shape(BENT, shape).nodes for sign in (1.0, -1.0)
        )
        expected = 0.5 * (ahead - behind)
        assert np.abs(expected).max() > 1e-8, f"theta {index} does nothing"
        assert np.abs(by_theta @ step - expected).max() < 0.02 * np.abs(expected).max(), f"theta {index}"


def test_what_is_believed_stays_possible_and_begins_as_described(model):
    firm = model.body.of_material(np.ones(len(model.tetrahedra)), 0.49, np.zeros(3))
    material = MaterialBelief(firm, Spreads())
    assert material.poisson_ratio(np.zeros(len(material.prior))) == 0.49
    wild = 1e3 * material.prior
    assert material.poisson_ratio(wild) <= 0.49 and material.poisson_ratio(-wild) > 0.0
    assert material.share(wild).min() > 0.1 and material.share(wild).max() < 10.0


def test_what_a_controller_believes_of_the_material_does_not_move_the_guard(model):
    material = MaterialBelief(model.body, Spreads())
    believed = model.of(material.body(2.0 * material.prior)).shape(BENT)
    expected = model.stresses(model.shape(BENT)).max()
    assert abs(model.stresses(believed).max() - expected) > 0.01 * expected
    assert StressGuard(model, 1e9).stress(believed) == pytest.approx(expected, rel=1e-3)


def test_a_shape_says_where_its_grippers_are(model):
    assert model.poses_in(model.shape(BENT).nodes) == pytest.approx(BENT, abs=1e-4)


def test_a_drawn_shape_goes_to_what_was_seen_the_more_the_firmer_the_springs(model):
    shape = model.shape(BENT)
    chosen = np.flatnonzero(np.abs(model.rest_nodes[:, 2] - 0.1) < 1e-9)
    count, size = len(chosen), model.rest_nodes.size
    rows = csr_matrix((np.ones(count), (np.arange(count), 3 * chosen + 1)), (count, size))
    wanted = np.full(count, 0.004)
    loose, firm = (model.drawn(shape, rows, wanted, np.full(count, k * model.body.modulus)) for k in (1e-4, 100.0))
    assert 0.0 < loose[chosen, 1].mean() < 0.5 * firm[chosen, 1].mean()
    assert firm[chosen, 1] == pytest.approx(wanted, rel=0.05)
    assert np.abs(firm[np.concatenate(model.held)]).max() < 1e-5, "grippers do not give way"


def test_pins_lead_what_they_hold_and_leave_when_they_are_gone(model):
    chosen = np.flatnonzero(np.abs(model.rest_nodes[:, 2] - 0.1) < 1e-9)
    places = model.rest_nodes[chosen] + [0.01, 0.0, 0.0]
    pinned = model.shape(np.zeros(12), model.rest, model.pinned(chosen, places))
    assert np.abs(pinned.nodes[chosen] - places).max() < 1e-3
    assert np.abs(model.shape(np.zeros(12), pinned).nodes - model.rest_nodes).max() < 1e-6


def test_what_cannot_be_is_told(model):
    far = np.zeros(12)
    far[8] = -0.19
    with pytest.raises(NoEquilibriumError, match="Move them less"):
        model.shape(far)
    assert np.abs(model.shape(np.zeros(12)).nodes - model.rest_nodes).max() < 1e-6, "a failure leaves nothing behind"
    with pytest.raises(SoftformError, match="no poses"):
        model.shape(np.full(12, np.nan))
    with pytest.raises(SoftformError, match="elements: corotational"):
        HeldModel(object())
