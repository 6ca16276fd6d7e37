"""Rigid motions: Kabsch recovers what was done to the shape."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from softform_core.errors import SoftformError
from softform_core.geometry.rigid import RigidTransform, kabsch

vectors = st.tuples(*[st.floats(-3.0, 3.0)] * 3).map(np.array)


@settings(max_examples=50)
@given(turn=vectors, shift=vectors, pivot=vectors, seed=st.integers(0, 1000))
def test_kabsch_recovers_a_motion(turn, shift, pivot, seed):
    points = np.random.default_rng(seed).normal(size=(12, 3))
    motion = RigidTransform().moved(turn, 10.0 * shift, pivot)
    found = kabsch(points, motion.apply(points))
    assert np.allclose(found.rotation, motion.rotation, atol=1e-9)
    assert np.allclose(found.translation, motion.translation, atol=1e-8)
    assert np.allclose(motion.apply_inverse(motion.apply(points)), points, atol=1e-9)
    assert np.allclose(Rotation.from_quat(motion.quaternion()).as_matrix(), motion.rotation)


def test_kabsch_does_not_mirror():
    points = np.random.default_rng(0).normal(size=(30, 3))
    found = kabsch(points, points * [1.0, 1.0, -1.0])
    assert np.linalg.det(found.rotation) == pytest.approx(1.0)


def test_two_pairs_are_too_few():
    with pytest.raises(SoftformError, match="three pairs"):
        kabsch(np.eye(3)[:2], np.eye(3)[:2])
