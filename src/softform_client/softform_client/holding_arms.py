"""The hand-over to a robot whose base a gripper holds: `reach` of its own, while the arms hold still.

from softform_client.client import Mode, ShapeClient
from softform_client.holding_arms import HoldingArms

with HoldingArms("softform", "right", [0.01, 0.02, 0.05, 0, 0, 0, 1]) as arms, ShapeClient("held") as robot:
    robot.reach(target, Mode.PLAN_AND_MOVE, held_by=arms)  # target: m, in the frame of the arms

The arms are moved before, by `shape_object`: the base's six degrees of freedom are theirs, the rest is the robot's.
"""

import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from rclpy.node import Node
from scipy.spatial.transform import Rotation

from softform_client.reach_messages import pose_from_message
from softform_client.steering_beats import SteeringBeats
from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.geometry.rigid import RigidTransform
from softform_core.robots import load_robot
from softform_core.shapes.features import FeaturePoints
from softform_core.shapes.shape import Shape
from softform_interfaces.action import ReachShape
from softform_interfaces.msg import DriverState
from softform_ros import qos
from softform_ros.action_caller import NotConnectedError
from softform_ros.asked import ASKED_SECONDS
from softform_ros.background_node import BackgroundNode
from softform_ros.driver_words import state_word
from softform_ros.frames import Frames
from softform_ros.service_calls import asked_parameters

__all__ = ["HoldingArms", "hand_over"]

GRIPPERS = "left", "right"
"""Names of the grippers that may hold a base."""
_SERVER = "object_shaper"
"""The node of the arms that knows which they are, and tells TF where the grippers stand."""
_PERIOD = 0.1
"""Between two looks at the arms while the robot moves, and between two beats, s."""
_SILENCE = 1.0
"""Time after which the arms' driver (5 Hz), the gripper's pose (10 Hz) or this process (10 Hz) counts as lost, s."""
_STILL = 1e-3, 5e-3
"""m and rad by which the gripper may be measured elsewhere than at the hand-over: noise of the joints' encoders."""
_NUMBERS = itertools.count(1)


def hand_over(target: Shape, gripper: RigidTransform, grip: RigidTransform) -> Shape:
    """Return a target, m, that stands in the frame of the arms, in that of the base which a gripper holds.

    Args:
        target: In the frame in which `gripper` is.
        gripper: Pose of the gripper, m: takes its points into that frame.
        grip: Pose of the robot's base in the gripper, m: where it is mounted.
    """
    back = gripper.after(grip).inverse()
    return target.transformed(back.rotation, back.translation)


class Held(NamedTuple):
    """Where a gripper holds still.

    Attributes:
        gripper: Its pose in the frame of the targets, m.
        epoch: Of the arms' driver; it ends with whatever makes the arms safe, with a fault and a reset.
    """

    gripper: RigidTransform
    epoch: int


class HoldingArms:
    """The arms of which a gripper holds a robot's base; they are looked at, and never moved from here.

    Args:
        namespace: ROS namespace of the arms' stack.
        gripper: `left` or `right`.
        grip: Pose of the robot's base in the gripper's frame, x, y, z (m), qx, qy, qz, qw. At the grasp that frame has
            the axes of the arms'.
        frame: Frame of the targets, any that TF connects with the arms'; empty: the arms' own.
        timeout: Time to wait for the arms' nodes, s.

    Raises:
        SoftformError: If there is no such gripper, or `grip` is no pose.
    """

    def __init__(self, namespace: str, gripper: str, grip: ArrayLike, frame: str = "", timeout: float = 10.0) -> None:
        if gripper not in GRIPPERS:
            raise SoftformError(f"There is no gripper '{gripper}'.", f"Name {' or '.join(GRIPPERS)}.")
        self._name, self._frame, self._timeout = gripper, frame, timeout
        self.grip = RigidTransform.from_pose(grip)
        self._background = BackgroundNode(f"holding_arms_{os.getpid()}_{next(_NUMBERS)}", namespace)
        self._state: DriverState | None = None
        self._heard_at = -np.inf

    def connect(self) -> Self:
        """Listen to the arms, and wait until their driver and the gripper's pose are heard, or the time is up.

        Raises:
            NotConnectedError: If the node that tells where the grippers stand does not answer.
        """
        self._background.open()
        try:
            self._listen(self._background.node)
        except SoftformError:
            self.close()
            raise
        return self

    def _listen(self, node: Node) -> None:
        values = asked_parameters(node, _SERVER, ["robot"], self._timeout)
        if values is None:
            raise NotConnectedError(
                f"No {_SERVER} node in {node.get_namespace()} answered within {self._timeout:g} s.",
                "Launch the arms first (./softform launch shaping), and check their namespace.",
            )
        self._arms = load_robot(values["robot"]).in_namespace(node.get_namespace())
        self._frame = self._frame or self._arms.base_frame
        self._frames = Frames(node).listen()
        node.create_subscription(DriverState, "driver_state", self._note, qos.LATCHED_STATE)
        deadline, is_known = time.monotonic() + self._timeout, False
        while time.monotonic() < deadline and (self._state is None or not is_known):
            time.sleep(_PERIOD)
            with suppress(SoftformError):
                self.gripper()
                is_known = True

    def close(self) -> None:
        """Listen no more; the arms hold on."""
        self._background.close()

    def __enter__(self) -> Self:
        return self.connect()

    def __exit__(self, *error: object) -> None:
        self.close()

    def held(self, patience: float = 0.0) -> Held:
        """Return where the gripper holds, while the arms hold still with brakes.

        Arms that come to rest now, as at the end of `shape_object`, are waited for up to `patience` s.

        Raises:
            SoftformError: If they do not, or if it is not known: their driver or the gripper's pose is not heard.
        """
        deadline = time.monotonic() + patience
        while True:
            try:
                epoch = self.epoch()  # before the pose, which is then of arms that hold
                return Held(self.gripper(), epoch)
            except SoftformError:
                if time.monotonic() >= deadline:
                    raise
            time.sleep(_PERIOD)

    def epoch(self) -> int:
        """Return the epoch of the arms' driver, which holds them with brakes; raises as `held` does."""
        state = self._state
        if state is None or time.monotonic() - self._heard_at > _SILENCE:
            raise SoftformError("The arms' driver is not heard.", "See whether it runs: ./softform status.")
        if state.state != DriverState.HOLDING:
            told = f" ({state.reason})" if state.reason else ""
            raise SoftformError(
                f"The arms do not hold with brakes: their driver is {state_word(state.state)}{told}.",
                "Wait until what moves them has ended; after a stop or fault look at them and reset.",
            )
        return int(state.epoch)

    def gripper(self) -> RigidTransform:
        """Return where the gripper stands in the frame of the targets now, m; raises as `held` does."""
        try:
            return self._frames.lookup(self._frame, self._arms.frame_of(self._name), time.time())
        except SoftformError as error:
            raise SoftformError(f"Where the gripper stands is lost: {error.message}", error.next_step) from error

    def base(self) -> RigidTransform:
        """Return where the gripper holds the robot's base, in the frame of the targets, m; raises as `held` does."""
        return self.held(ASKED_SECONDS).gripper.after(self.grip)

    def line(self) -> str:
        """Tell where the base is held, for people; raises as `held` does."""
        base = self.base()
        x, y, z = 1e3 * base.translation
        turned = np.degrees(Rotation.from_matrix(base.rotation).magnitude())
        return f"the robot's base is held at {x:.1f}, {y:.1f}, {z:.1f} mm, turned by {turned:.1f} degrees"

    def carry(self, plan: ReachShape.Result, poses: ArrayLike) -> Array:
        """Return poses (12,) of the grippers for `shape_object` by which the base comes to where a free plan wants it.

        Both grippers make the same motion, so that what is between them keeps its shape.

        Args:
            plan: Of `reach` with `fix_pose=False`, by the place where the base is held now.
            poses: (12,) of the grippers now, as the last goal of `shape_object` told them.

        Raises:
            As `held` does.
        """
        self.held(ASKED_SECONDS)
        own, now = self._arms.base_frame, time.time()
        places = {name: self._frames.lookup(own, self._arms.frame_of(name), now) for name in GRIPPERS}
        base = places[self._name].after(self.grip)
        motion = base.after(pose_from_message(plan.solve.target_pose).inverse()).after(base.inverse())
        found = []
        for pose, place in zip(np.reshape(poses, (2, 6)), places.values(), strict=True):
            there = motion.after(place)
            found += [
                pose[:3] + there.translation - place.translation,
                Rotation.from_matrix(there.rotation).as_rotvec(),
            ]
        return np.concatenate(found)

    def handed_over(
        self, target: Shape | None, features: FeaturePoints | None
    ) -> tuple[Held, Shape | None, FeaturePoints | None]:
        """Return where the gripper holds, and target and feature points in the base's frame; raises as `held` does."""
        held = self.held(ASKED_SECONDS)
        if target is not None:
            target = hand_over(target, held.gripper, self.grip)
        if features is not None:
            features = replace(features, positions=held.gripper.after(self.grip).apply_inverse(features.positions))
        return held, target, features

    @contextmanager
    def holding(self, held: Held, node: Node, cancel: Callable[[], object]) -> Iterator["Hold"]:
        """Watch over a goal of the robot while the arms hold its base: it is cancelled as soon as they do not.

        Beats (`SteeringBeat`) say to the robot's node meanwhile that this watch is alive: if it is frozen, the robot is
        let go of. The last beat says that what is held stays held.

        Args:
            held: Where they held when the target was handed over.
            node: This program's, in the namespace of the robot; another thread spins it.
            cancel: Cancels the goal.
        """
        hold = Hold(self, held, SteeringBeats(node, _SILENCE), cancel)
        try:
            yield hold
        finally:
            hold.end()

    def _note(self, message: DriverState) -> None:
        self._state, self._heard_at = message, time.monotonic()


class Hold:
    """A goal of a held robot while its arms hold, as `HoldingArms.holding` has it.

    Attributes:
        reason: Why the goal is cancelled; empty while the arms hold as they did.
    """

    def __init__(self, arms: HoldingArms, held: Held, beats: SteeringBeats, cancel: Callable[[], object]) -> None:
        self._arms, self._held, self._beats, self._cancel = arms, held, beats, cancel
        self.reason, self._ends, self._looking = "", threading.Event(), threading.Lock()
        self._place, self._seen_at = held.gripper, time.monotonic()
        self._thread = threading.Thread(target=self._run, name="hold", daemon=True)
        self._beats.beat(True, of_goal=True)
        self._thread.start()

    def look(self) -> str:
        """Look at the arms now, and return the reason."""
        with self._looking:
            try:
                is_moved = self._arms.epoch() != self._held.epoch
                moved = self._held.gripper.inverse().after(self._seen())
                shift = float(np.linalg.norm(moved.translation))
                turn = float(Rotation.from_matrix(moved.rotation).magnitude())
                if is_moved or shift > _STILL[0] or turn > _STILL[1]:
                    raise SoftformError(
                        f"The arms were moved, stopped or reset meanwhile: by {1e3 * shift:.1f} mm and {turn:.3f} rad.",
                        "Look at both, and hand the target over again once the arms hold.",
                    )
            except SoftformError as error:
                self.reason = self.reason or f"{error} The held robot stays where it is."
            return self.reason

    def _seen(self) -> RigidTransform:
        """The gripper's pose, or for a moment the last one: a busy machine is late with it now and then."""
        try:
            self._place, self._seen_at = self._arms.gripper(), time.monotonic()
        except SoftformError:
            if time.monotonic() - self._seen_at > _SILENCE:
                raise
        return self._place

    def require(self) -> None:
        """Require that the arms hold the base as it was handed over, now and since.

        Raises:
            SoftformError: If they do not, with the reason.
        """
        if reason := self.look():
            raise SoftformError(reason)

    def end(self) -> None:
        """Watch no more: what the robot holds stays held."""
        self._ends.set()
        self._thread.join()
        self._beats.beat(False)
        self._beats.close()

    def _run(self) -> None:
        while not self._ends.wait(_PERIOD):
            self._beats.beat(True, of_goal=True)
            if self.look():
                with suppress(SoftformError):  # its node is gone, which who waits for the goal is told
                    self._cancel()  # again and again: one that is not accepted yet cannot be cancelled
