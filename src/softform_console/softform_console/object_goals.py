"""Targets of pages for an object that arms hold: previewed by its model, then sent as goals, as they were seen."""

import math
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from geometry_msgs.msg import Point as PointMessage
from numpy.typing import NDArray

from softform_client.client import GoalFailedError
from softform_client.object_client import ObjectClient
from softform_console.goal_runner import GoalRunner
from softform_console.object_messages import ObjectPreviewed, PreviewObject, ShapeObject, Shaping
from softform_console.protocol import Notice
from softform_console.scene_frames import PREVIEW, Kind, SceneItem
from softform_console.scene_store import PREVIEWS, SceneStore
from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.surface.skin import places_in_map
from softform_interfaces.srv import PredictObject
from softform_ros.conversions import points_from_cloud
from softform_ros.guarded_node import GuardedNode

_ANSWER_SECONDS = 20.0
"""Time within which a preview is answered, s."""


class ObjectRunner(GoalRunner):
    """A `GoalRunner` for what is asked of `object_shaper`."""

    def open_client(self, permit: Callable[[], None]) -> ObjectClient:
        """Connect."""
        return ObjectClient(self._namespace, permit=permit).connect()


class ObjectGoals:
    """Previews one target after the other, of those that wait the newest, and sends the newest as a goal.

    Args:
        node: Node of the console; another thread spins it.
        index: Number of the robot for pages.
        runner: Carries out its goals.
        triangles: Returns the triangles (t, 3) of the object's surface, None where they are not known yet.
        store: Takes what is shown.
    """

    def __init__(
        self,
        node: GuardedNode,
        index: int,
        runner: ObjectRunner,
        triangles: Callable[[], NDArray[np.uint32] | None],
        store: SceneStore,
    ) -> None:
        self._node, self._index, self._runner, self._triangles, self._store = node, index, runner, triangles, store
        self._client = node.create_client(PredictObject, "predict_object")
        self._lock, self._asked_at = threading.Lock(), -math.inf
        self._waiting: PreviewObject | None = None
        self._count, self._wanted, self._target = 0, 0, np.zeros((0, 3))

    def close(self) -> None:
        """Close the service."""
        self._node.destroy_client(self._client)

    def preview(self, message: PreviewObject) -> None:
        """Ask for a target, or let it wait until the one before is there; what was previewed is not sent any more.

        Raises:
            SoftformError: If nothing predicts it, or a point is none of the object.
        """
        if not self._client.service_is_ready():
            raise SoftformError("Nothing predicts the object's shape.", "See whether the node object_shaper runs.")
        self._request(message)
        with self._lock:
            self._wanted += 1
            self._target, self._waiting = np.zeros((0, 3)), message
        self._ask()

    def begin(self, message: ShapeObject) -> None:
        """Send the target that was previewed last; returns at once.

        Raises:
            SoftformError: If it is not that one, or a goal runs.
        """
        with self._lock:
            target, is_newest = self._target, message.preview == self._count
        if not is_newest or not len(target):
            raise SoftformError("This is not the target that was previewed last.", "Look at the newest, and ask again.")
        self._runner.begin(lambda client: self._shape(client, message, target), message.type)

    def _shape(self, client: ObjectClient, message: ShapeObject, target: Array) -> None:
        look = 0

        def note(feedback: Any) -> None:
            nonlocal look
            look = feedback.iteration
            self._tell(feedback.stage, look, feedback, "")

        try:
            result = client.shape(
                nodes=target,
                iterations=message.iterations,
                stress_limit=message.stress_limit,
                epoch=int(message.epoch),
                on_feedback=note,
            )
            self._tell("ended", result.iterations, result, _ENDS.get(result.ended, result.ended))
        except GoalFailedError as error:
            looked = error.result.iterations > 0  # else its numbers say nothing
            self._tell("failed", error.result.iterations, error.result if looked else None, str(error))
        except Exception as error:
            self._tell("failed", look, None, str(error))
            raise

    def _tell(self, stage: Any, look: int, told: Any, text: str) -> None:
        self._runner.tell(
            Shaping(
                robot=self._index,
                stage=stage,
                look=look,
                reported_rms=_finite(getattr(told, "reported_rms", math.nan)),
                true_rms=_finite(getattr(told, "true_rms", math.nan)),
                true_max=_finite(getattr(told, "true_max", math.nan)),  # of a result
                stress=_finite(getattr(told, "stress", math.nan)),
                text=text,
            )
        )

    def _request(self, message: PreviewObject) -> PredictObject.Request:
        """Say a target as the service wants it.

        Raises:
            SoftformError: If a point is none of the object.
        """
        request = PredictObject.Request(gripper_poses=message.poses)
        points = message.points
        if not points:
            return request
        triangles = self._triangles()
        if triangles is None:
            raise SoftformError("The object is not known yet.", "Wait until it is shown.")
        uv = np.array([(point.u, point.v) for point in points])
        which, weights = places_in_map(uv, len(triangles))
        request.nodes, request.weights = triangles[which].ravel().tolist(), weights.ravel().tolist()
        request.places = [PointMessage(x=x, y=y, z=z) for x, y, z in (point.target for point in points)]
        request.importance = [point.weight for point in points]
        return request

    def _ask(self) -> None:
        """Ask for what waits, if nothing is under way; an answer that never comes keeps nothing up for long."""
        with self._lock:
            message, now = self._waiting, time.monotonic()
            if message is None or now - self._asked_at < _ANSWER_SECONDS:
                return
            self._waiting, self._asked_at, number = None, now, self._wanted
        self._client.call_async(self._request(message)).add_done_callback(lambda done: self._answered(number, done))

    def _answered(self, number: int, done: Any) -> None:
        with self._lock:
            self._asked_at = -math.inf
        try:
            self._show(number, done.result())
        except Exception as error:
            self._runner.tell(Notice(level="error", about="preview_object", text=str(error)))
        self._ask()

    def _show(self, number: int, answer: PredictObject.Response) -> None:
        if not answer.success:
            raise SoftformError(answer.message)
        target, triangles = points_from_cloud(answer.target), self._triangles()
        with self._lock:
            self._count += 1
            if number == self._wanted:  # else another one is asked for already, and this is but looked at
                self._target = target
            count = self._count
        points = target.astype(np.float32)
        self._store.put(
            SceneItem(Kind.TARGET, self._index, time.time(), points, PREVIEW, triangles=triangles), PREVIEWS
        )
        self._runner.tell(
            ObjectPreviewed(
                robot=self._index,
                id=count,
                poses=list(answer.gripper_poses),
                off=_finite(answer.off),
                stress=answer.stress,
                stress_limit=answer.stress_limit or None,
            )
        )


_ENDS = {
    "done": "It is there, as far as the controller sees.",
    "nearest": "No small move brings it nearer: this is as near as the grippers bring it.",
    "iterations": "The looks are used up. Send it again to go on.",
}
"""What the controller says of an end that is none of an error."""


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
