"""The arms: kinematics, velocities within all limits, brakes, and grippers that the arms carry."""

import numpy as np
import pytest

from softform_core.errors import SoftformError
from softform_core.geometry.rigid import RigidTransform
from softform_shaping.arms import ArmLimits, SixAxisArm, joint_velocities, two_small_arms

CENTRES = np.array([[0.0, 0.0, 0.005], [0.0, 0.0, 0.215]])
NEAR = np.array([0.0, 0.01, 0.01, 0.0, 0.1, 0.0, 0.005, 0.0, -0.01, 0.0, -0.1, 0.05])


def test_the_jacobian_is_that_of_differences():
    arm, joints = SixAxisArm(RigidTransform()), np.array([0.3, 0.4, 0.5, -0.6, 0.7, 0.8])
    jacobian = arm.jacobian(joints)
    for index, step in enumerate(1e-6 * np.eye(6)):
        ahead, behind = arm.flange(joints + step), arm.flange(joints - step)
        assert (ahead.translation - behind.translation) / 2e-6 == pytest.approx(jacobian[:3, index], abs=1e-8)
        spin = (ahead.rotation - behind.rotation) / 2e-6 @ arm.flange(joints).rotation.T
        assert [spin[2, 1], spin[0, 2], spin[1, 0]] == pytest.approx(jacobian[3:, index], abs=1e-8)


def test_velocities_keep_all_limits_at_once():
    random = np.random.default_rng(0)
    limits = ArmLimits(np.full(6, -1.0), np.full(6, 1.0), np.full(6, 0.5), np.full(6, 4.0))
    for _ in range(20):
        jacobian, wanted = random.standard_normal((6, 6)), 10.0 * random.standard_normal(6)
        joints, before = random.uniform(-0.999, 0.999, 6), random.uniform(-0.05, 0.05, 6)
        found = joint_velocities(jacobian, wanted, joints, before, limits, 0.02)
        assert (np.abs(found) <= 0.5 + 1e-9).all() and (np.abs(found - before) <= 0.08 + 1e-9).all()
        assert (np.abs(joints + 0.02 * found) <= 1.0 + 1e-9).all()
    with pytest.raises(SoftformError, match="no numbers"):
        joint_velocities(np.eye(6), np.ones(6), np.full(6, np.nan), np.zeros(6), limits, 0.02)


def test_within_the_limits_the_velocity_is_the_wanted_one():
    limits = ArmLimits(np.full(6, -1.0), np.full(6, 1.0), np.full(6, 5.0), np.full(6, 1e3))
    jacobian = np.eye(6) + 0.1 * np.random.default_rng(1).standard_normal((6, 6))
    wanted = np.linspace(-0.3, 0.3, 6)
    found = joint_velocities(jacobian, wanted, np.zeros(6), np.zeros(6), limits, 0.02)
    assert jacobian @ found == pytest.approx(wanted, abs=1e-6)


def test_arms_carry_the_grippers_where_they_should_be():
    arms = two_small_arms(CENTRES)
    assert np.abs(arms.poses).max() < 1e-6
    going = arms.go(NEAR)
    assert going.short_shift < 1e-4 and going.short_turn < 1e-3 and going.seconds < 3.0
    assert np.abs(arms.poses - NEAR).max() < 1e-3


def test_what_is_out_of_reach_is_told_by_what_is_short_and_limits_hold():
    arms = two_small_arms(CENTRES)
    far = NEAR.copy()
    far[0] = 0.9
    going = arms.go(far)
    assert going.short_shift > 0.1
    for arm, joints in zip(arms.arms, arms.joints, strict=True):
        assert (joints >= arm.limits.lower - 1e-9).all() and (joints <= arm.limits.upper + 1e-9).all()


def test_brakes_hold_until_they_are_released():
    arms = two_small_arms(CENTRES)
    arms.hold()
    with pytest.raises(SoftformError, match="brakes on"):
        arms.go(NEAR)
    assert np.abs(arms.poses).max() < 1e-6
    arms.release()
    assert arms.go(NEAR).short_shift < 1e-4
