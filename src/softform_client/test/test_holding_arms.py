"""A target is handed over to the frame of a held base, and a goal goes on only while the arms hold as they did."""

import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

from softform_client.holding_arms import Held, Hold, HoldingArms, hand_over
from softform_client.reach_messages import pose_to_message
from softform_core.errors import SoftformError
from softform_core.geometry.rigid import RigidTransform
from softform_core.shapes.features import FeaturePoints
from softform_core.shapes.shape import Shape
from softform_interfaces.action import ReachShape
from softform_interfaces.msg import DriverState

GRIPPER = RigidTransform().moved(np.array([0.3, -0.2, 0.5]), np.array([0.1, -0.2, 0.4]), np.zeros(3))
GRIP = RigidTransform().moved(np.array([np.pi / 2, 0.0, 0.0]), np.array([0.0, 0.01, 0.05]), np.zeros(3))
POINTS = np.array([[0.0, 0.0, 0.1], [0.02, 0.0, 0.1], [0.0, 0.03, 0.1], [0.01, 0.01, 0.12]])
FACES = np.array([[0, 1, 3], [1, 2, 3], [2, 0, 3]])


class Arms(HoldingArms):
    """Hold as they are told."""

    def __init__(self) -> None:
        super().__init__("arms", "left", GRIP.pose)
        self.is_lost = False
        self.now: Held | SoftformError = Held(GRIPPER, 7)

    def epoch(self) -> int:
        if isinstance(self.now, SoftformError):
            raise self.now
        return self.now.epoch

    def gripper(self) -> RigidTransform:
        assert isinstance(self.now, Held)
        if self.is_lost:
            raise SoftformError("Where the gripper stands is lost.")
        return self.now.gripper


class Beats(list):
    """Beats that were sent."""

    def beat(self, is_there: bool, of_goal: bool = False) -> None:
        self.append((is_there, of_goal))

    def close(self) -> None:
        self.append("closed")


def test_a_target_in_the_frame_of_the_arms_comes_into_that_of_the_base():
    wanted = Shape.from_mesh(POINTS, FACES)
    in_gripper = wanted.points @ GRIP.rotation.T + GRIP.translation  # as it is mounted, then as the arms turned it
    in_arms = Shape.from_mesh(in_gripper @ GRIPPER.rotation.T + GRIPPER.translation, FACES)
    found = hand_over(in_arms, GRIPPER, GRIP)
    assert np.allclose(found.points, wanted.points, atol=1e-12) and np.allclose(found.normals, wanted.normals)
    assert not np.allclose(hand_over(in_arms, GRIP, GRIPPER).points, wanted.points, atol=1e-2)


def test_feature_points_are_handed_over_with_the_target_and_alone():
    features = FeaturePoints.of([[0.5, 0.5]], POINTS[:1], [3.0])
    held, target, handed = Arms().handed_over(Shape.from_mesh(POINTS, FACES), features)
    assert held.epoch == 7 and np.allclose(handed.positions, target.points[:1]) and handed.weights == [3.0]
    _, target, alone = Arms().handed_over(None, features)
    assert target is None and np.allclose(alone.positions, handed.positions)


def test_where_the_arms_carry_the_base_a_target_lies_as_a_free_plan_has_it():
    free = RigidTransform().moved(np.array([0.1, 0.2, -0.1]), np.array([0.01, 0.02, 0.03]), np.zeros(3))
    plan, target, arms = ReachShape.Result(), Shape.from_mesh(POINTS, FACES), Arms()
    plan.solve.target_pose = pose_to_message(free)
    other = RigidTransform(GRIPPER.rotation, GRIPPER.translation - [0.0, 0.0, 0.2])
    arms._arms = SimpleNamespace(base_frame="arms", frame_of=str)
    arms._frames = SimpleNamespace(lookup=lambda frame, of, stamp: {"left": GRIPPER, "right": other}[of])
    centre, here = np.array([0.3, 0.2, 0.1]), np.zeros(12)  # where the left gripper grasped: it turns about that
    here[:3] = GRIPPER.translation - centre
    left, right = np.reshape(arms.carry(plan, here), (2, 6))
    carried = RigidTransform(RigidTransform().moved(left[3:], left[:3], centre).rotation, centre + left[:3])
    found, before = (hand_over(target, gripper, GRIP).points for gripper in (carried, GRIPPER))
    assert np.allclose(found, free.apply(before), atol=1e-9) and not np.allclose(found, before, atol=1e-3)
    motion = carried.after(GRIPPER.inverse())
    assert np.allclose(right[:3], motion.apply(other.translation) - other.translation, atol=1e-12)
    assert np.allclose(right[3:], left[3:], atol=1e-12)


def test_a_gripper_is_left_or_right():
    with pytest.raises(SoftformError, match="left or right"):
        HoldingArms("arms", "tip", GRIP.pose)


MOVED = RigidTransform(GRIPPER.rotation, GRIPPER.translation + [0.0, 0.0, 0.002])
TURNED = GRIPPER.moved(np.array([0.0, 0.0, 0.01]), np.zeros(3), GRIPPER.translation)


@pytest.mark.parametrize(
    ("now", "words"),
    [
        (Held(MOVED, 7), "2.0 mm"),
        (Held(TURNED, 7), "0.010 rad"),
        (Held(GRIPPER, 8), "stopped or reset"),
        (SoftformError("The arms' driver is not heard."), "not heard"),
    ],
)
def test_a_goal_is_cancelled_until_it_ends_once_the_arms_do_not_hold_as_they_did(now, words):
    arms, beats, cancelled = Arms(), Beats(), threading.Semaphore(0)
    hold = Hold(arms, Held(GRIPPER, 7), beats, cancelled.release)
    hold.require()
    arms.now = now
    assert cancelled.acquire(timeout=5.0) and cancelled.acquire(timeout=5.0)
    arms.now = Held(GRIPPER, 7)  # that they hold again does not count
    with pytest.raises(SoftformError, match=words) as refused:
        hold.require()
    assert "stays where it is" in str(refused.value)
    hold.end()
    assert beats[0] == (True, True) and beats[-2:] == [(False, False), "closed"]


def test_what_moves_less_than_the_encoders_noise_goes_on():
    arms, beats = Arms(), Beats()
    hold = Hold(arms, Held(GRIPPER, 7), beats, pytest.fail)
    arms.now = Held(RigidTransform(GRIPPER.rotation, GRIPPER.translation + 2e-4), 7)
    assert hold.look() == ""
    hold.end()


def test_it_is_told_where_the_base_is_held():
    arms = Arms()
    arms.now = Held(RigidTransform(translation=np.array([0.1, 0.0, 0.0])), 7)
    assert arms.line() == "the robot's base is held at 100.0, 10.0, 50.0 mm, turned by 90.0 degrees"


@pytest.mark.parametrize("word", ["safe", "running", "fault", "offline", "making safe"])
def test_arms_that_do_not_hold_with_brakes_are_named_by_their_drivers_state(word):
    arms = HoldingArms("arms", "left", GRIP.pose)
    arms._note(DriverState(state=getattr(DriverState, word.replace(" ", "_").upper()), reason="why", epoch=1))
    with pytest.raises(SoftformError, match=rf"do not hold.*{word} \(why\)"):
        arms.held()


def test_arms_that_come_to_rest_are_waited_for():
    arms = Arms()
    arms.now = SoftformError("They move.")
    with pytest.raises(SoftformError, match="They move"):
        arms.held()
    threading.Timer(0.3, lambda: setattr(arms, "now", Held(GRIPPER, 7))).start()
    assert arms.held(20.0).epoch == 7
    arms.is_lost = True
    with pytest.raises(SoftformError, match="lost"):
        arms.held(0.2)


def test_a_pose_that_is_late_for_a_moment_ends_nothing_and_one_that_is_lost_does():
    arms = Arms()
    hold = Hold(arms, Held(GRIPPER, 7), Beats(), lambda: None)
    arms.is_lost = True
    time.sleep(0.3)
    assert hold.look() == ""
    time.sleep(1.0)
    assert "lost" in hold.look()
    hold.end()
