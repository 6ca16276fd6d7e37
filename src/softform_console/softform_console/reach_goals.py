"""Goals of pages: one at a time, carried out by a thread of its own."""

import math
import threading
from collections.abc import Callable
from typing import Any

from softform_client.client import GoalFailedError, Mode, ShapeClient
from softform_console.protocol import FromServer, GoalProgress, GoalResult, Notice, Reach
from softform_core.errors import SoftformError
from softform_core.shapes.shape import Shape
from softform_interfaces.action import ReachShape

_MODES = {
    "plan": Mode.PLAN_ONLY,
    "move": Mode.PLAN_AND_MOVE,
    "verify": Mode.PLAN_MOVE_AND_VERIFY,
    "closed_loop": Mode.CLOSED_LOOP,
}


class ReachGoals:
    """Sends goals to `reach_shape` and tells how they go.

    Args:
        namespace: ROS namespace of the stack.
        frame: The robot's frame.
        tell: Takes progress and result.
        on_end: Called with each goal's end.
    """

    def __init__(
        self, namespace: str, frame: str, tell: Callable[[FromServer], None], on_end: Callable[[], None]
    ) -> None:
        self._namespace, self._frame, self._tell, self._on_end = namespace, frame, tell, on_end
        self._client: ShapeClient | None = None
        self._thread: threading.Thread | None = None

    @property
    def is_running(self) -> bool:
        """Whether a goal runs."""
        return self._thread is not None and self._thread.is_alive()

    def begin(self, goal: Reach, target: Shape) -> None:
        """Send a goal; returns at once.

        Raises:
            SoftformError: If one runs.
        """
        if self.is_running:
            raise SoftformError("A goal runs.", "Wait for its end, or cancel it.")
        self._thread = threading.Thread(target=self._carry_out, args=(goal, target), name="goal", daemon=True)
        self._thread.start()

    def cancel(self) -> None:
        """Cancel the goal that runs."""
        if self._client is not None and self.is_running:
            threading.Thread(target=self._client.cancel, name="cancel", daemon=True).start()

    def close(self) -> None:
        """Cancel what runs and close the connection."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _carry_out(self, goal: Reach, target: Shape) -> None:
        try:
            if self._client is None:
                client = ShapeClient(self._namespace, self._frame)
                client.connect()
                self._client = client
            try:
                result = self._client.reach(
                    target,
                    _MODES[goal.mode],
                    partial=goal.partial,
                    fix_pose=goal.pose != "free",
                    accept_unreachable=goal.accept_unreachable,
                    on_feedback=lambda feedback: self._tell(_progress(goal, feedback)),
                )
                self._tell(_result(goal, result, ""))
            except GoalFailedError as error:
                self._tell(_result(goal, error.result, str(error)))
        except Exception as error:  # the page must hear of it
            self._tell(Notice(level="error", about="reach", text=str(error)))
        finally:
            self._on_end()


def _progress(goal: Reach, feedback: ReachShape.Feedback) -> GoalProgress:
    return GoalProgress(
        robot=goal.robot,
        target=goal.target,
        stage=feedback.stage,
        iteration=feedback.iteration,
        round=feedback.round,
        mean_error=_finite(feedback.mean_error),
        max_error=_finite(feedback.max_error),
    )


def _result(goal: Reach, result: Any, text: str) -> GoalResult:
    measured = result.measured if result.measured.valid else None
    return GoalResult(
        robot=goal.robot,
        target=goal.target,
        error_code=result.error_code,
        text=text,
        actuators=[float(value) for value in result.actuators.value],
        mean_error=_finite(result.solve.mean_error),
        max_error=_finite(result.solve.max_error),
        measured_mean_error=None if measured is None else _finite(measured.mean_error),
        measured_max_error=None if measured is None else _finite(measured.max_error),
        solve_time=float(result.solve.solve_time),
        iterations=int(result.solve.iterations),
    )


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
