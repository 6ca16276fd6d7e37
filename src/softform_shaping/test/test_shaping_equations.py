"""The steps of paper 003's loop as functions: features, interaction, intermediate target, pair, slice, ICP."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from softform_core.errors import SoftformError
from softform_core.geometry.rigid import RigidTransform
from softform_shaping.alignment import align
from softform_shaping.belief import Belief, Doubts, Seen
from softform_shaping.control import command, intermediate_target, shape_error, shape_errors
from softform_shaping.correction import farthest_pair, slice_nodes
from softform_shaping.features import (
    Past,
    cumulative_variance,
    explained_variance,
    inverse_interaction,
    principal_components,
)
from softform_shaping.ours import InteractionFilter
from softform_shaping.visual_mesh import VisualMesh


@pytest.fixture
def linear() -> tuple[np.ndarray, np.ndarray, Past]:
    """A body that is linear: m = A r."""
    random = np.random.default_rng(2)
    map_, poses = random.standard_normal((90, 12)), random.standard_normal((12, 18))
    return map_, poses, Past(map_ @ poses, np.diff(poses, axis=1))


def test_features_are_projections_and_variances_sum_up(linear):
    map_, poses, past = linear
    components = principal_components(past.shapes, 12)
    assert components.basis.T @ components.basis == pytest.approx(np.eye(12))
    assert components.features(past.shapes[:, 3]) == pytest.approx(
        components.basis.T @ (past.shapes[:, 3] - past.shapes.mean(axis=1))
    )
    assert explained_variance(components).sum() == pytest.approx(1.0)
    assert cumulative_variance(components)[11] == pytest.approx(1.0)
    assert (np.diff(components.eigenvalues) <= 1e-9).all()
    with pytest.raises(SoftformError, match="17 components at most"):
        principal_components(past.shapes, 18)


def test_of_a_linear_body_the_interaction_is_exact_and_one_command_arrives(linear):
    map_, poses, past = linear
    components = principal_components(past.shapes, 12)
    inverse = inverse_interaction(past, components)
    wanted = poses[:, -1] + 0.1
    target, shape = map_ @ wanted, past.shapes[:, -1]
    whole = command(inverse, components, intermediate_target(target, shape, 1.0), shape, np.ones(12))
    assert whole == pytest.approx(np.full(12, 0.1))
    part = command(inverse, components, intermediate_target(target, shape, 5.0), shape, np.ones(12))
    assert part == pytest.approx(np.full(12, 0.02))


def test_the_window_drops_the_oldest(linear):
    _, _, past = linear
    after = past.with_new(np.ones(90), np.zeros(12))
    assert after.shapes.shape == past.shapes.shape and after.variations.shape == past.variations.shape
    assert after.shapes[:, 0] == pytest.approx(past.shapes[:, 1])
    with pytest.raises(SoftformError, match="one shape more"):
        Past(past.shapes, past.variations[:, 1:])


def test_the_error_is_that_of_the_mesh_where_the_cloud_says_it_is():
    target = np.random.default_rng(3).standard_normal((40, 3))
    motion = RigidTransform.from_pose([0.1, 0.0, 0.2, 0.0, 0.0, 0.6, 0.8])
    assert shape_error(target, motion.apply(target), motion) == pytest.approx(0.0, abs=1e-12)
    rms, largest = shape_errors(target, target + [0.0, 0.003, 0.004])
    assert (rms, largest) == pytest.approx((5.0, 5.0))


def test_the_farthest_pair_and_its_slice():
    nodes = np.array([[0.0, 0.0, z] for z in np.linspace(0.0, 1.0, 11)])
    cloud = np.vstack([nodes + [0.01, 0.0, 0.0], [[0.0, 0.3, 0.52]]])
    assert farthest_pair(cloud, nodes) == (11, 5)
    assert slice_nodes(nodes, np.array([0.0, 0.0, 1.0]), nodes[5], 0.1 + 1e-9).tolist() == [4, 5, 6]


def test_icp_finds_a_small_motion_and_does_not_follow_a_plane_to_infinity(model):
    visual = VisualMesh(model.skin, model.faces, len(model.rest_nodes), 2)
    places = visual.places(model.rest_nodes)
    normals = visual.normals(places)
    motion = RigidTransform().moved(np.array([0.0, 0.01, 0.02]), np.array([0.002, -0.001, 0.001]), places.mean(axis=0))
    found = align(motion.apply_inverse(places[::3]), places, normals, 0.01)
    assert found.fitness == 1.0
    assert np.abs(found.motion.apply(motion.apply_inverse(places)) - places).max() < 5e-4
    flat = np.abs(places[:, 1] + 0.025) < 1e-9
    away = align(places[flat] + [0.0, 0.001, 0.0], places[flat], normals[flat] * [0.0, 1.0, 0.0], 0.01)
    assert np.isfinite(away.motion.translation).all() and np.abs(away.motion.translation).max() < 0.05
    with pytest.raises(SoftformError, match="3 points of the object"):
        align(places[:3], places, normals, 0.01)


def test_the_visual_mesh_lies_on_the_skin(model):
    visual = VisualMesh(model.skin, model.faces, len(model.rest_nodes), 1)
    places = visual.places(model.rest_nodes)
    assert len(visual.faces) == 4 * len(model.faces)
    low, high = model.rest_nodes.min(axis=0), model.rest_nodes.max(axis=0)
    assert (np.minimum(np.abs(places - low), np.abs(places - high)).min(axis=1) < 1e-9).all()
    outwards = np.einsum("ni,ni->n", visual.normals(places), places - 0.5 * (low + high))
    assert (outwards > 0.0).all()
    assert np.asarray(visual.weights.sum(axis=1)).ravel() == pytest.approx(1.0)


def test_the_filter_learns_how_the_body_differs():
    random = np.random.default_rng(4)
    jacobian = random.standard_normal((60, 12))
    truth = np.eye(12) + 0.1 * random.standard_normal((12, 12))
    followed = InteractionFilter(0.15, 1e-4)
    for _ in range(24):
        step = 0.01 * random.standard_normal(12)
        followed.update(jacobian, step, jacobian @ truth @ step)
    assert np.abs(followed.factor - truth).max() < 0.02


def _seen(points: np.ndarray, normals: np.ndarray, gaps: np.ndarray) -> Seen:
    axes = (np.arange(len(points)).repeat(3), np.arange(3 * len(points)))
    return Seen(points, normals, gaps, csr_matrix((normals.ravel(), axes)))


def test_the_camera_is_set_right_but_not_beyond_what_it_can_be_off():
    random = np.random.default_rng(2)
    normals = random.standard_normal((400, 3))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    points, shift, none = random.standard_normal((400, 3)), np.array([0.003, -0.001, 0.002]), np.zeros((400, 3, 0))
    seen = _seen(points, normals, normals @ shift)
    loose = Belief(Doubts(depth_noise=0.001, independent=400), np.zeros(0), np.zeros(3))
    assert loose.update(seen, none)[1] == pytest.approx(np.zeros(400), abs=2e-4)
    assert loose.camera.apply(np.zeros(3)) == pytest.approx(shift, abs=1e-4)
    firm = Belief(Doubts(camera=(1e-6, 1e-6), skin=1e-6), np.zeros(0), np.zeros(3))
    firm.update(seen, none)
    assert np.abs(firm.camera.translation).max() < 1e-6


def test_clouds_of_two_shapes_part_what_one_does_not():
    """A camera that is off and a theta look alike in the first shape; in the second theta acts the other way."""
    points = np.column_stack(
        [
            *np.meshgrid(np.linspace(-0.1, 0.1, 20), np.linspace(-0.1, 0.1, 20)),
        ]
    ).reshape(-1, 2)
    points = np.column_stack([points, np.zeros(len(points))])
    normals = np.tile([0.0, 0.0, 1.0], (len(points), 1))
    belief = Belief(Doubts(independent=400, skin=1e-6), np.array([1.0]), np.zeros(3))
    by_theta = np.tile(np.array([[0.0], [0.0], [0.004]]), (len(points), 1, 1))
    shift, theta = 0.002, 0.5
    for sign in (1.0, -1.0):  # the cloud lies too high by what camera and theta do, less what is known of them
        known = belief.camera.apply(np.zeros(3))[2]
        gaps = np.full(len(points), shift - known - sign * 0.004 * (theta - belief.theta[0]))
        belief.update(_seen(points, normals, gaps), sign * by_theta)
        if sign > 0.0:
            assert abs(belief.theta[0] - theta) > 0.2, "one cloud says which it is"
    assert belief.theta[0] == pytest.approx(theta, abs=0.05)
    assert belief.camera.apply(np.zeros(3))[2] == pytest.approx(shift, abs=2e-4)


def test_a_cloud_that_is_looked_at_again_counts_once():
    """Of what is linear the second look says what the first did; of what is not, it comes nearer."""
    points = np.zeros((50, 3))
    points[:, 0] = np.linspace(-0.1, 0.1, 50)
    normals = np.tile([0.0, 0.0, 1.0], (50, 1))
    doubts = Doubts(depth_noise=0.001, independent=50, camera=(1e-6, 1e-6), skin=1e-6)

    def looked(law, slope, looks, target):
        belief = Belief(doubts, np.array([1.0]), np.zeros(3))
        for look in range(looks):
            here = belief.theta[0]
            by_theta = np.tile(np.array([[0.0], [0.0], [slope(here)]]), (50, 1, 1))
            belief.update(_seen(points, normals, np.full(50, law(here) - target)), by_theta, look > 0)
        return belief.theta[0], belief._information

    once, twice = (looked(lambda theta: 2e-4 * theta, lambda theta: 2e-4, looks, 1e-4) for looks in (1, 2))
    assert twice[0] == pytest.approx(once[0], rel=0.01)
    assert twice[1] == pytest.approx(once[1], rel=0.01, abs=1e-6)

    def bent(theta):
        return 0.02 * np.tanh(theta)

    found, better = (looked(bent, lambda theta: 0.02 / np.cosh(theta) ** 2, looks, 0.01)[0] for looks in (1, 5))
    assert abs(bent(found) - 0.01) > 4e-4
    assert bent(better) == pytest.approx(0.01, abs=1e-4)
