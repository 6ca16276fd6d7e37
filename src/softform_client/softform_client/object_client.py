"""A plain Python object that has two arms shape the object that they hold, for programs that need not know ROS.

from softform_client.object_client import ObjectClient

with ObjectClient() as arms:
    result = arms.shape(poses=[0.0] * 12)
    print(result.ended, result.true_rms)
"""

import itertools
import os
from collections.abc import Callable
from typing import Self

import numpy as np
from builtin_interfaces.msg import Time
from numpy.typing import ArrayLike

from softform_client.client import GoalFailedError
from softform_core.errors import SoftformError
from softform_interfaces.action import ShapeObject
from softform_ros.action_caller import ActionCaller
from softform_ros.action_goals import NO_ERROR
from softform_ros.asked import asked_now
from softform_ros.conversions import cloud_from_points

__all__ = ["ObjectClient", "ShapeCode"]

ShapeCode = ShapeObject.Result
"""The constants of a result are the error codes of its action."""

_NUMBERS = itertools.count(1)


class ObjectClient:
    """Commands one pair of arms; usable from any thread, one goal at a time.

    Args:
        namespace: ROS namespace of the stack.
        timeout: Time to wait for the node, s.
        permit: Called right before each goal is sent, which is not sent if this raises.
    """

    def __init__(
        self, namespace: str = "/softform", timeout: float = 10.0, permit: Callable[[], None] = lambda: None
    ) -> None:
        self._permit = permit
        own = f"shape_object_client_{os.getpid()}_{next(_NUMBERS)}"
        self._shaping = ActionCaller(ShapeObject, "shape_object", "object_shaper", own, namespace, timeout)

    def connect(self) -> Self:
        """Open the connection, and wait for the node.

        Raises:
            NotConnectedError: If it does not answer in time.
        """
        self._shaping.connect()
        return self

    def close(self) -> None:
        """Close the connection; a goal that runs goes on."""
        self._shaping.close()

    def __enter__(self) -> Self:
        return self.connect()

    def __exit__(self, *error: object) -> None:
        self.close()

    def cancel(self) -> bool:
        """Cancel the goal that is waited for, which then raises `GoalFailedError`; returns whether there was one."""
        return self._shaping.cancel()

    def shape(
        self,
        poses: ArrayLike | None = None,
        nodes: ArrayLike | None = None,
        *,
        controller: str = "",
        iterations: int = 0,
        stress_limit: float = 0.0,
        epoch: int = 0,
        on_feedback: Callable[[ShapeObject.Feedback], None] | None = None,
    ) -> ShapeObject.Result:
        """Bring the object into a shape, and wait until the controller is content or its looks are used up.

        Args:
            poses: (12,) of the grippers, relative to the grasp: x, y, z (m) and rotation vector (rad) of each; the
                target is what the model makes of them.
            nodes: (V, 3) m, where each node of the object's model shall be, instead.
            controller: `ours` or `printed`; empty: ours.
            iterations: Looks at the object, at most; 0: the node's default.
            stress_limit: Von Mises stress, Pa, before which the arms are stopped; 0: the usual one.
            epoch: `epoch` of the driver at the time at which this was meant: it is rejected if that is over; 0: now.
            on_feedback: Called with each feedback message, from the client's thread.

        Returns:
            The result message: how it ended, errors as believed and as they truly are (SI units).

        Raises:
            NotConnectedError: If `connect` was not called, or the node disappears.
            GoalFailedError: If the goal ended with an error code, with what was found until then.
            SoftformError: If not one target is given.
        """
        if (poses is None) == (nodes is None):
            raise SoftformError("Not one target is given.", "Give poses, or nodes.")
        goal = ShapeObject.Goal(controller=controller, iterations=iterations, stress_limit=float(stress_limit))
        if nodes is not None:
            goal.target = cloud_from_points(np.asarray(nodes, dtype=np.float64), "", Time())
        else:
            goal.gripper_poses = np.asarray(poses, dtype=np.float64).ravel().tolist()
        if epoch:
            goal.asked = asked_now(self._shaping.node, epoch)
        result = self._shaping.call(goal, on_feedback, self._permit)
        if result.error_code != NO_ERROR:
            raise GoalFailedError(result.error_msg, result.error_code, result)
        return result
